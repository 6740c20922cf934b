# Follows the control flow of the kernels in a PTX file.
# usage: awk -f paths.awk -v from=RE -v to=RE [-v without=RE] [-v kernel=NAME] FILE.ptx
#
# Prints "yes" where some path leads from an instruction that matches `from` ("entry": the first one)
# to one that matches `to`, past none that matches `without`; else "no". Exit status 2: the file holds
# what this cannot follow, or no such kernel.

/^\t*\.?[a-z. ]*\.entry / || /\.visible \.entry / {
  name = $0
  sub(/.*\.entry +/, "", name)
  sub(/[^A-Za-z0-9_$].*/, "", name)
  inside = kernel == "" || name == kernel
  if (inside) kernels++
  body = 0
  next
}
!inside { next }
/^\{/ { body = 1; first = count + 1; next }
/^\}/ && body { inside = 0; entries[++entry_count] = first; text[++count] = "exit;"; next }
!body { next }
{
  line = $0
  sub(/\/\/.*/, "", line)
  gsub(/^[ \t]+|[ \t]+$/, "", line)
  if (line == "" || line == "{" || line == "}" || line ~ /^\./) next
  if (line ~ /^[$A-Za-z_0-9]+:$/) { # a label, which is unique in the file
    sub(/:$/, "", line)
    at[line] = count + 1
    next
  }
  if (line ~ /^(@!?%?[a-z0-9]+ +)?(call|brx)/) {
    print "cannot follow: " line > "/dev/stderr"
    failed = 1
    exit 2
  }
  text[++count] = line
}

function visit(node) {
  if (node < 1 || node > count || seen[node]) return
  seen[node] = 1
  queue[++tail] = node
}

function visit_successors(node,    target) {
  line = text[node]
  if (line ~ /^(@!?%[a-z0-9]+[ \t]+)?bra/) {
    target = line
    sub(/;.*/, "", target)
    sub(/.*[ \t]/, "", target)
    visit(at[target])
    if (line ~ /^bra/) return
  } else if (line ~ /^(ret|exit|trap)/) {
    return
  }
  visit(node + 1)
}

END {
  if (failed || kernels == 0) exit 2
  if (from == "entry")
    for (i = 1; i <= entry_count; ++i) visit(entries[i])
  else
    for (i = 1; i <= count; ++i)
      if (text[i] ~ from) visit_successors(i)
  for (head = 1; head <= tail; ++head) {
    node = queue[head]
    if (text[node] ~ to) { print "yes"; exit 0 }
    if (without != "" && text[node] ~ without) continue
    visit_successors(node)
  }
  print "no"
}

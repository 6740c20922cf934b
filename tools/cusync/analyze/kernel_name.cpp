// SPDX-License-Identifier: MIT
#include "kernel_name.hpp"

#include <algorithm> // any_of, max, min
#include <cctype>    // isdigit, isupper
#include <cstdlib>   // free
#include <cxxabi.h>  // __cxa_demangle
#include <iterator>  // begin, end
#include <memory>    // unique_ptr
#include <vector>    // vector

namespace cusync::analyze {

// --- bytes ------------------------------------------------------------------------------------------

namespace {

/// Bytes of the UTF-8 character that begins there; 0 where there is none, or a control character.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first >= 0xc2 && first <= 0xdf) // U+0080 to U+009F are controls
    return follows(1) && !(first == 0xc2 && byte(1) < 0xa0) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool outside = (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
    return follows(1) && follows(2) && follows(3) && !outside ? 4 : 0;
  }
  return 0;
}

} // namespace

std::string printable(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_at(text, at);
    if (size == 0)
      clean += '?';
    else
      clean += text.substr(at, size);
    at += std::max<std::size_t>(1, size);
  }
  return clean;
}

// --- mangled names ----------------------------------------------------------------------------------

namespace {

/// Each back reference can double what a name unpacks to: few of them keep it small.
bool is_cheap(std::string_view mangled) {
  constexpr std::size_t most_bytes = 1024, most_references = 12;
  std::size_t references = 0;
  for (std::size_t i = 0; i + 1 < mangled.size(); ++i) {
    const auto next = static_cast<unsigned char>(mangled[i + 1]);
    const bool counted = next == '_' || std::isdigit(next) != 0 || std::isupper(next) != 0;
    if ((mangled[i] == 'S' || mangled[i] == 'T') && counted) ++references;
  }
  return mangled.size() <= most_bytes && references <= most_references;
}

/// The function's own name, read off the mangled one: identifiers stand there with their length.
std::string identifier_of(std::string_view mangled) {
  std::string found;
  std::size_t at = mangled.starts_with("_ZN") ? 3 : 2;
  while (at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0) {
    std::size_t length = 0;
    for (; at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0; ++at)
      length = std::min<std::size_t>(mangled.size(), length * 10 + std::size_t(mangled[at] - '0'));
    if (length > mangled.size() - at) break;
    found = mangled.substr(at, length);
    at += length;
  }
  if (found.empty()) return std::string(mangled);
  return at < mangled.size() && mangled[at] == 'I' ? found + "<...>" : found;
}

std::string demangled(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  if (!is_cheap(name)) return identifier_of(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? std::string(text.get()) : identifier_of(name);
}

// --- shorter ----------------------------------------------------------------------------------------

bool opens(char c) { return c == '<' || c == '(' || c == '{' || c == '['; }
bool closes(char c) { return c == '>' || c == ')' || c == '}' || c == ']'; }

/// Calls `visit(position, character)` for what stands outside of all brackets, opening ones included,
/// until it returns false.
template <class Visit> void for_each_outside(std::string_view text, const Visit& visit) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    if (depth == 0 && !visit(i, text[i])) return;
    if (opens(text[i])) ++depth;
    if (closes(text[i]) && !arrow && depth > 0) --depth;
  }
}

constexpr std::string_view anonymous = "(anonymous namespace)";

/// Up to the parameters of the first function in it: `f(int)::{lambda()#1}` is known by `f`.
std::string_view without_parameters(std::string_view text) {
  std::size_t end = text.size();
  for_each_outside(text, [&](std::size_t at, char c) {
    if (c != '(' || at == 0 || text.substr(at).starts_with(anonymous)) return true;
    end = at;
    return false;
  });
  return text.substr(0, end);
}

/// Behind the last "::" or blank that is outside of brackets.
std::string_view last_part(std::string_view text) {
  std::size_t begin = 0;
  for_each_outside(text, [&](std::size_t at, char c) {
    if (c == ':' || c == ' ') begin = at + 1;
    return true;
  });
  return text.substr(begin);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '*' || text.back() == '&'))
    text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

std::vector<std::string_view> arguments_of(std::string_view list) {
  std::vector<std::string_view> arguments;
  std::size_t begin = 0;
  for_each_outside(list, [&](std::size_t at, char c) {
    if (c != ',') return true;
    arguments.push_back(list.substr(begin, at - begin));
    begin = at + 1;
    return true;
  });
  arguments.push_back(list.substr(begin));
  return arguments;
}

struct type_parts {
  std::string_view name;      ///< `b` of `a::b<c, d>(e) const`.
  std::string_view arguments; ///< `c, d`.
};

type_parts parts_of(std::string_view type) {
  const std::string_view whole = trimmed(last_part(trimmed(without_parameters(trimmed(type)))));
  const std::size_t open = whole.find('<');
  if (open == std::string_view::npos || open == 0 || !whole.ends_with('>')) return {whole, {}};
  return {whole.substr(0, open), whole.substr(open + 1, whole.size() - open - 2)};
}

/// The template argument that says what a kernel computes: `CUDAFunctor_add` of PyTorch's elementwise
/// kernels. Numbers, element types and wrappers do not.
std::string_view telling_argument(std::string_view arguments, int depth = 0) {
  constexpr std::string_view plain[] = {
      "float", "double", "int",    "long",     "bool",          "char",      "short", "unsigned",
      "true",  "false",  "Half",   "BFloat16", "__half",        "half_t",    "array", "bfloat16_t",
      "half",  "void",   "size_t", "tuple",    "__nv_bfloat16", "tfloat32_t"};
  constexpr std::string_view wrappers[] = {"gpu_kernel_impl", "gpu_kernel_impl_nocast", "ReduceOp"};
  constexpr int deepest = 8;
  for (const std::string_view each : arguments_of(arguments)) {
    const type_parts argument = parts_of(each);
    const auto is = [&](std::string_view name) { return argument.name == name; };
    if (argument.name.empty() || std::isdigit(static_cast<unsigned char>(argument.name[0])) != 0 ||
        opens(argument.name[0]) || std::any_of(std::begin(plain), std::end(plain), is))
      continue;
    if (!std::any_of(std::begin(wrappers), std::end(wrappers), is) || depth == deepest)
      return argument.name;
    const std::string_view inner = telling_argument(argument.arguments, depth + 1);
    return inner.empty() ? argument.name : inner;
  }
  return {};
}

/// Keeps both ends: names of generated kernels differ at either.
std::string cut_to(std::string text, std::size_t width) {
  constexpr std::string_view dots = "...";
  if (text.size() <= width || width <= dots.size() + 2) return text;
  const std::size_t tail = (width - dots.size()) / 3;
  std::size_t head = width - dots.size() - tail, rest = text.size() - tail;
  const auto inside = [&](std::size_t at) { // of a character
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
  };
  while (head > 0 && inside(head)) --head;
  while (inside(rest)) ++rest;
  return text.substr(0, head) + std::string(dots) + text.substr(rest);
}

std::string arguments_text(std::string_view arguments) {
  const std::string_view telling = telling_argument(arguments);
  if (!telling.empty()) return std::string(telling);
  std::string text;
  for (const std::string_view each : arguments_of(arguments))
    text += (text.empty() ? "" : ", ") + std::string(parts_of(each).name);
  return text;
}

/// Kernels with template arguments differ at the front.
std::string beginning_of(std::string_view name, std::size_t width) {
  constexpr std::string_view dots = "...";
  if (name.size() <= width || width < dots.size()) return std::string(name);
  std::size_t end = width - dots.size();
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0u) == 0x80u) --end;
  return std::string(name.substr(0, end)) + std::string(dots);
}

std::string shortened(std::string_view name, std::size_t width) {
  const type_parts function = parts_of(name);
  if (function.name.empty()) return cut_to(std::string(name), width);
  if (function.arguments.empty()) return cut_to(std::string(function.name), width);
  const std::size_t room = width - std::min(2 * width / 5, function.name.size()) - 2;
  const std::string arguments = "<" + cut_to(arguments_text(function.arguments), room) + ">";
  return cut_to(beginning_of(function.name, width - arguments.size()) + arguments, width);
}

} // namespace

std::string full_name(std::string_view name) { return printable(demangled(name)); }

std::string short_name(std::string_view name, std::size_t width) {
  constexpr std::size_t looked_at = 16384; // behind that nothing is left to see
  const std::string text = full_name(name.substr(0, looked_at));
  return shortened(text, width);
}

} // namespace cusync::analyze

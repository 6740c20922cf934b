# `make demo` and `make test` need only git and make: they install what is missing, then build.
# JOBS=n limits the parallelism, WERROR=ON turns warnings into errors. In CI (the variable) they are
# errors, and a build goes on after one, so that a single run shows all.

JOBS   ?= $(shell nproc)
WERROR ?= $(if $(CI),ON,OFF)

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CTEST_PARALLEL_LEVEL       := $(JOBS)

configure = cmake --preset $(1) --log-level=NOTICE
build     = cmake --build $(1) $(if $(2),--target $(2)) $(if $(CI),-- -k 0)
run_tests = ctest --output-on-failure --no-tests=error --test-dir

.PHONY: demo test lint format sanitize cuda gpu install-test clean help

help: ## What `make` can do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## Build, then run the main job: GPT-3's MLP, on the GPU or on a virtual one
	@scripts/setup.sh build
	@$(call configure,default) -DCUSYNC_WERROR=$(WERROR)
	@$(call build,build,cusync_cli)
	build/cusync run mlp

test: ## All tests that this machine can run (with a GPU and nvcc, the GPU tests too)
	@scripts/setup.sh build clang
	@$(call configure,default) -DCUSYNC_WERROR=$(WERROR)
	@$(call build,build)
	@$(run_tests) build

# With clang++, which takes less than half of g++'s time here and is the second compiler to run them.
sanitize: ## Host tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup.sh build sanitize
	@$(call configure,sanitize)
	@$(call build,build-sanitize,host_side)
	@$(run_tests) build-sanitize -L 'host|conformance|example'

cuda: ## Compile all CUDA code for sm_80 and sm_90a, check its PTX; needs nvcc but no GPU
	@scripts/setup.sh build
	@$(call configure,cuda)
	@$(call build,build-cuda,cuda_side)
	@$(run_tests) build-cuda -L ptx

gpu: ## build-gpu/{cusync,gpu_tests} for sm_90a, to be copied to a machine with a GPU
	@scripts/setup.sh build
	@$(call configure,gpu)
	@$(call build,build-gpu,cusync_cli cuda_side)

lint: ## clang-format and clang-tidy
	@scripts/setup.sh build lint
	@$(call configure,default) -DCUSYNC_WERROR=$(WERROR)
	@scripts/lint.sh build

format: ## Rewrite the sources with clang-format
	@scripts/setup.sh lint
	@scripts/lint.sh --fix

install-test: ## A consumer project, with find_package and with FetchContent
	@scripts/setup.sh build
	@$(call configure,default) -DCUSYNC_WERROR=$(WERROR)
	@$(call build,build)
	@$(run_tests) build -L install

clean: ## Remove the build folders
	rm -rf build build-sanitize build-cuda build-gpu

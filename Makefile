# Each target is one line; what it does is in hack/.
.PHONY: run test check build bench demo install soak fuzz

run: ## build fletch and start it; asks before it installs anything
	@hack/run.sh

test: ## install what the tests need (Debian) and run them all
	@hack/setup.sh && hack/test.sh

check: ## everything that must hold before a commit lands
	@hack/setup.sh && hack/check.sh

build: ## ./bin/fletch, static and stripped
	@hack/build.sh

bench: ## the benchmarks, then fletch bench
	@hack/bench.sh

demo: build ## the tour that needs nothing set up
	@bin/fletch demo

install: build ## into PREFIX/bin, by default ~/.local/bin
	@hack/install.sh

soak: ## kill hub, keepers and viewers for 20 rounds; with SOAK=minutes all tests after that
	@hack/soak.sh

fuzz: ## every fuzz target for FUZZTIME (default 30s)
	@hack/fuzz.sh

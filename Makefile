# Everything a person or CI does with this repository. Needs Go, make, and apt-get or brew for what is missing.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)

# The product runs without C; a checkout that git distrusts builds all the same.
BUILD = CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath
RUN = $(GO) run -buildvcs=false

.PHONY: help run build test verify generate setup setup-test bench bench-panel pictures clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: setup build ## Build Entrega and run its demo under ./.entrega
	./bin/entrega demo

build: ## Build bin/entrega
	$(BUILD) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/entrega ./cmd/entrega

test: setup-test ## Install what the tests need, verify, and run every test with the race detector
	$(MAKE) verify
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

verify: ## Check generated code, format, vet, staticcheck, import rules and the one retry owner
	$(GO) tool templ generate -check -path views -log-level error
	$(GO) tool templ generate -check -path mailer -log-level error
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		test -z "$$unformatted" || { echo "run gofmt on:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(RUN) ./internal/verify

generate: ## Regenerate the Go code of the templ pages
	$(GO) tool templ generate -path views
	$(GO) tool templ generate -path mailer

setup: ## Install the PostgreSQL server when there is none
	@$(RUN) ./internal/setup -pg-bin '$(ENTREGA_PG_BIN)'

setup-test: ## Install what the tests need: PostgreSQL, a C compiler, Chromium, axe-core
	@$(RUN) ./internal/setup -test -pg-bin '$(ENTREGA_PG_BIN)'

bench: setup build ## Measure Entrega against what the machine allows, and write docs/performance.md
	$(RUN) ./cmd/bench -entrega bin/entrega -out docs/performance.md -growth docs

bench-panel: setup ## Measure the panel with 10,000, 100,000 and 1,000,000 tasks (takes a while)
	$(GO) test -buildvcs=false ./cmd/entrega -run '^$$' -bench '^BenchmarkPanel$$' -benchtime 1x -timeout 3h

pictures: setup-test ## Make the pictures in docs/pictures from an installation that is filled for it
	CGO_ENABLED=0 $(GO) test -buildvcs=false ./cmd/entrega -run '^$$' -bench '^BenchmarkPictures$$' -benchtime 1x -timeout 30m

clean: ## Remove what was built, but no data
	rm -rf bin

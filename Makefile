# Everything that people and CI do with this repository. `make` lists it.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
RUN_FLAGS ?=
EMULATORS := go run ./emulator/exec --

.PHONY: help run test check test-short bench-reconcile bench-health bench-lease rehearse deploy destroy proxyctl

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## the whole plane on this machine; RUN_FLAGS="--store=memory --port 8081" to change it
	@scripts/need.sh go
	@echo "building; the very first time takes some minutes" >&2
	@go build -o bin/emulator ./emulator
	@exec bin/emulator $(RUN_FLAGS)

test: ## what CI runs: format, vet, static checks, layers, all tests with -race on the real emulators
	@scripts/check.sh

check: ## the part of `make test` that needs no emulator: format, vet, static checks, layers
	@scripts/check.sh --static

test-short: ## all tests but the long ones
	@$(EMULATORS) go test -short ./...

bench-reconcile: ## seconds, reads, writes and provider calls of a run
	@$(EMULATORS) scripts/bench.sh reconcile

bench-health: ## a sweep over 1,000 proxies, 200 of them black holes
	@scripts/bench.sh health

bench-lease: ## lease cycles against the raw client, and the cold start
	@$(EMULATORS) scripts/bench.sh lease

rehearse: ## run the whole deploy with the real gcloud against a stand-in for Google Cloud
	@scripts/rehearse.sh

deploy: ## PROJECT=p REGION=r [FLAGS=--dry-run]: make or update the plane in a project
	@scripts/deploy.sh --project "$(PROJECT)" --region "$(REGION)" $(FLAGS)

destroy: ## PROJECT=p REGION=r [FLAGS=--all]: remove what deploy made
	@scripts/destroy.sh --project "$(PROJECT)" --region "$(REGION)" $(FLAGS)

proxyctl: ## build the operators' command line into bin/
	@scripts/need.sh go
	@go build -o bin/proxyctl ./scripts/proxyctl

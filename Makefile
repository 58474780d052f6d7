# Every target works on a machine that has Go, git and make; what else is
# needed is built here or installed by the scripts that the targets call.

BIN := $(CURDIR)/bin
PREFIX ?= $(HOME)/.local
GO ?= go
export CGO_ENABLED ?= 0

# The image that a release is published as, without a tag, is compiled into the program.
# Without one, the program installs only where --image names an image, and on local clusters.
IMAGE_REPOSITORY ?=
PUBLISHED = $(if $(IMAGE_REPOSITORY),-X github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo.repository=$(IMAGE_REPOSITORY))

# -trimpath and an empty build id make two builds of one tree the same;
# grpcnotrace leaves out pages of gRPC's that nobody serves here, and html/template.
GO_BUILD = $(GO) build -tags grpcnotrace -trimpath -ldflags "-s -w -buildid= $(PUBLISHED)"

# With COVER=DIR the tests and the programs that they start count there which
# statements run; scripts/cover.sh reads it. go test would have the programs count
# in a directory that it deletes, hence -exec.
ifdef COVER
COVERAGE := -cover -covermode=atomic -coverpkg=./cmd/kubectl-ocm/...,./pkg/...,./manifests/...
COVERAGE_EXEC := -exec 'env GOCOVERDIR=$(abspath $(COVER))'
COVERAGE_ARGS := -args -test.gocoverdir=$(abspath $(COVER))
endif

TOOL := $(GO) tool -modfile=scripts/go.tools.mod

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kubectl-ocm
	$(GO_BUILD) $(COVERAGE) -o $(BIN)/kubectl-ocm ./cmd/kubectl-ocm
	@ln -sf kubectl-ocm $(BIN)/kubectl_complete-ocm

.PHONY: localkube
localkube: ## Build bin/localkube: etcd and the Kubernetes control plane for local clusters
	@scripts/build-localkube.sh

.PHONY: examples
examples: ## Build the sample add-on: bin/heartbeat-addon
	cd examples/heartbeat && $(GO_BUILD) -o $(BIN)/heartbeat-addon .

# Programs of others that only tests run. Tests build them when they need them.
.PHONY: test-programs
test-programs: ## Build the programs of others that tests run: aws-iam-authenticator, managed-serviceaccount, a registry
	@for name in msa registry aws-iam-authenticator; do scripts/build-test-program.sh $$name || exit 1; done

.PHONY: demo
demo: build localkube ## Start a hub and two managed clusters, join them and deploy a workload
	@scripts/demo.sh

.PHONY: demo-addon
demo-addon: build localkube examples ## Start a hub and two managed clusters with the sample add-on
	@scripts/demo-addon.sh

.PHONY: demo-tokens
demo-tokens: build localkube ## Start a hub and two managed clusters whose workloads become accounts of the hub
	@scripts/demo-tokens.sh

# Tests are compiled like the program, so that what make build has compiled is not
# compiled again. make lint runs go vet, with more checks than go test has.
TEST := -tags grpcnotrace -trimpath -ldflags "-s -w" -shuffle=on -vet=off
# Packages wait more than they compute: for leases, certificates and Pods. One more at a
# time than there are cores leaves no core to a package that waits.
AT_ONCE := -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
TESTPOOL := $(GO) run ./scripts/testpool
GOTESTSUM := $(GO) tool -modfile=$(CURDIR)/scripts/gotestsum.mod gotestsum
EVENTS := $(BIN)/test-events.json
# The path is short, because tests make Unix sockets below it.
RECORDED := $(or $(TMPDIR),/tmp)/ocm-times
PACKAGES ?= ./...

.PHONY: unit
unit: ## Run the tests that need no control plane, in two minutes
	$(GO) test -short $(TEST) $(TESTFLAGS) $(PACKAGES)

.PHONY: test
test: build localkube examples ## Run every test, the end-to-end suite on local clusters included
	@$(if $(COVER),rm -rf $(COVER) && mkdir -p $(COVER))
	@code=0; $(TESTPOOL) $(GOTESTSUM) --format pkgname-and-test-fails --hide-summary=output --jsonfile $(EVENTS) -- \
		-count=1 -timeout 60m $(AT_ONCE) $(TEST) $(COVERAGE) $(COVERAGE_EXEC) $(TESTFLAGS) $(PACKAGES) $(COVERAGE_ARGS) || code=$$?; \
	echo "The ten slowest tests:"; $(GOTESTSUM) tool slowest --num 10 --jsonfile $(EVENTS); exit $$code

.PHONY: test-times
test-times: build localkube examples test-programs ## Run every test and print what each package costs, as docs/contributing/testing.md has it
	$(GO) build -o $(BIN)/testtimes ./scripts/testtimes
	@rm -rf $(RECORDED) && mkdir -p $(RECORDED) && ln -s $(BIN)/localkube $(RECORDED)/localkube
	-LOCALKUBE=$(BIN)/testtimes $(BIN)/testtimes exec $(RECORDED) $(TESTPOOL) $(GO) test -json -count=1 -timeout 60m $(AT_ONCE) $(TEST) \
		-exec '$(BIN)/testtimes exec $(RECORDED)' $(TESTFLAGS) $(PACKAGES) >$(RECORDED)/events.json
	@$(BIN)/testtimes table $(RECORDED)

# The packages whose code starts goroutines or shares memory between them; the others
# have nothing that the race detector could find, and it makes everything slower.
RACE ?= $(shell scripts/race-packages.sh)

.PHONY: race
race: build localkube examples ## Run the tests of what shares memory with the race detector; RACE=./... runs all
	@scripts/install-build-tools.sh
	CGO_ENABLED=1 $(TESTPOOL) $(GO) test -race -count=1 -timeout 60m -shuffle=on -vet=off $(TESTFLAGS) $(RACE)

.PHONY: e2e
e2e: build localkube examples ## Run the end-to-end suite on local clusters only
	$(MAKE) --no-print-directory test PACKAGES=./e2e/...

# What takes long is a target of its own, and not part of make test.
.PHONY: test-versions
test-versions: build localkube examples ## Run the end-to-end suite on other Kubernetes releases (takes hours); CELLS="HUB:MANAGED ..."
	scripts/test-versions.sh $(CELLS)

.PHONY: test-upgrade
test-upgrade: build localkube examples ## Upgrade a fleet of the release before to this one and back; PREVIOUS=REVISION names another
	scripts/build-previous.sh $(PREVIOUS)
	$(GO) test -tags upgrade -count=1 -timeout 60m $(TESTFLAGS) ./e2e/upgrade

# Every node has the image under this name, as if it had been pulled.
.PHONY: e2e-kind
e2e-kind: IMAGE_REPOSITORY = localhost/kubectl-ocm
e2e-kind: build localkube examples test-programs ## Run the end-to-end suite, and what only real nodes show, on kind clusters (needs Docker)
	$(MAKE) --no-print-directory image image-samples image-kubectl IMAGE_PLATFORMS=$(HOST_PLATFORM) IMAGE_REPOSITORY=$(IMAGE_REPOSITORY)
	cd e2e/kind && $(GO_BUILD) -o $(BIN)/e2e-kind . && $(GO_BUILD) -o $(BIN)/kind sigs.k8s.io/kind
	$(BIN)/e2e-kind --logs $(BIN)/e2e-kind-logs \
		--archive $(BIN)/image.tar --archive $(BIN)/heartbeat-addon.tar --archive $(BIN)/msa.tar --archive $(BIN)/kubectl.tar \
		scripts/e2e-kind.sh
	$(GOTESTSUM) --format testname -- -tags kind -count=1 -timeout 30m -run TestKind ./e2e/guides

.PHONY: cover
cover: ## Measure the test coverage of the module, end-to-end tests included; fail below 80 %
	@scripts/cover.sh $(COVER)

.PHONY: mutants
mutants: localkube ## Change the code that decides and see its tests fail; below 90 % it fails (takes an hour or more)
	@scripts/mutants.sh

.PHONY: bench
bench: build localkube ## Measure the budgets of docs/contributing/benchmarks.md
	scripts/bench.sh

.PHONY: bench-scale
bench-scale: build localkube ## Measure how costs grow up to 10,000 clusters (takes hours)
	scripts/bench.sh scale

# What is packed is built with the commit that it is built from, and is under its
# platform: bin/linux_amd64/kubectl-ocm. git is asked by go build, which knows what
# has changed.
PACKED = $(GO_BUILD) -buildvcs=auto
VERSION := v$(shell sed -n 's/^const Version = "\(.*\)"$$/\1/p' pkg/helpers/buildinfo/buildinfo.go)
SOURCE := https://$(shell sed -n 's/^module //p' go.mod)
IMAGE ?= $(or $(IMAGE_REPOSITORY),localhost/kubectl-ocm):$(VERSION)
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64
HOST_PLATFORM = linux/$(shell $(GO) env GOARCH)
comma := ,
image_binaries = $(foreach p,$(subst $(comma), ,$(IMAGE_PLATFORMS)),$(BIN)/$(subst /,_,$(p))/$(1))

# for-platform is the environment that builds what is in the directory of a platform.
for-platform = $(foreach p,$(notdir $(@D)),GOOS=$(word 1,$(subst _, ,$(p))) GOARCH=$(word 2,$(subst _, ,$(p))))

.PHONY: FORCE
$(BIN)/%/kubectl-ocm: FORCE
	$(for-platform) $(PACKED) -o $@ ./cmd/kubectl-ocm

$(BIN)/%/localkube: FORCE
	@scripts/build-localkube.sh $(notdir $(@D))

$(BIN)/%/kubectl-ocm.exe: FORCE
	$(for-platform) $(PACKED) -o $@ ./cmd/kubectl-ocm

$(BIN)/%/heartbeat-addon: FORCE
	cd examples/heartbeat && $(for-platform) $(PACKED) -o $@ .

$(BIN)/%/msa: FORCE
	cd e2e/managedserviceaccount && $(for-platform) $(PACKED) -o $@ open-cluster-management.io/managed-serviceaccount/cmd

PACK_IMAGE := cd release && $(GO) run . image -dir $(BIN) -platforms $(IMAGE_PLATFORMS)

.PHONY: image
image: $(call image_binaries,kubectl-ocm) ## Build the container image as bin/image.tar; PUSH=1 pushes it to the registry of IMAGE
	$(PACK_IMAGE) -program kubectl-ocm -name $(IMAGE) -module .. -output $(BIN)/image.tar $(if $(PUSH),-push) \
		-version $(VERSION) -source $(SOURCE) \
		-summary "Cluster, add-on and workload identities for a fleet of Kubernetes clusters"

# The add-ons of the end-to-end suite, by the names that their manifests and tests use.
.PHONY: image-samples
image-samples: $(call image_binaries,heartbeat-addon) $(call image_binaries,msa) ## Build the images of the sample add-ons as bin/*.tar
	$(PACK_IMAGE) -program heartbeat-addon -name kubectl-ocm/heartbeat-addon -output $(BIN)/heartbeat-addon.tar \
		-version $(VERSION) -source $(SOURCE) -summary "The sample add-on of kubectl ocm"
	$(PACK_IMAGE) -program msa -name kubectl-ocm/managed-serviceaccount:e2e -output $(BIN)/msa.tar \
		-source https://github.com/open-cluster-management-io/managed-serviceaccount \
		-summary "managed-serviceaccount as it was released, for tests"

# A kubectl for Pods of the end-to-end suite: localkube is one, too.
.PHONY: image-kubectl
image-kubectl: localkube
	install -D $(BIN)/localkube $(BIN)/$(subst /,_,$(IMAGE_PLATFORMS))/localkube
	$(PACK_IMAGE) -program localkube -name kubectl-ocm/kubectl -output $(BIN)/kubectl.tar \
		-source https://github.com/kubernetes/kubernetes -summary "kubectl, for tests"

RELEASE_IMAGE_PLATFORMS := linux/amd64,linux/arm64,linux/ppc64le,linux/s390x
RELEASE_PLATFORMS := $(RELEASE_IMAGE_PLATFORMS),darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
# Who maintains the Debian packages.
MAINTAINER ?= kubectl-ocm maintainers <kubectl-ocm@users.noreply.github.com>
release_binaries = $(foreach p,$(subst $(comma), ,$(RELEASE_PLATFORMS)),$(BIN)/$(subst /,_,$(p))/kubectl-ocm$(if $(findstring windows,$(p)),.exe))

.PHONY: release-image
release-image: ## Build the container image of a release for all its platforms; PUSH=1 pushes it
	@$(MAKE) --no-print-directory image IMAGE_PLATFORMS=$(RELEASE_IMAGE_PLATFORMS)

.PHONY: release
release: build $(release_binaries) $(BIN)/linux_amd64/localkube $(BIN)/linux_arm64/localkube release-image ## Build archives, packages, the image and what describes them in dist/
	@LDFLAGS="$(PUBLISHED)" scripts/release-pages.sh $(BIN)/pages
	cd release && $(GO) run . dist -dir $(BIN) -platforms $(RELEASE_PLATFORMS) -pages $(BIN)/pages \
		-image $(BIN)/image.tar -repository "$(IMAGE_REPOSITORY)" -version $(VERSION) -source $(SOURCE) \
		-maintainer "$(MAINTAINER)" -tag "$$(git tag --points-at HEAD 'v*')" -output $(CURDIR)/dist

.PHONY: test-release
test-release: ## Test what packs images and packages, and install each package from archives
	cd release && $(GO) test ./...
	@scripts/test-release.sh

# What make install writes, below PREFIX.
INSTALLED = bin/kubectl-ocm bin/kubectl_complete-ocm share/bash-completion/completions/kubectl-ocm \
	share/zsh/site-functions/_kubectl-ocm share/fish/vendor_completions.d/kubectl-ocm.fish

.PHONY: install
install: build ## Install the kubectl plugin with manual pages and completions under $(PREFIX); CLUSTERADM=1 adds clusteradm
	@LDFLAGS="$(PUBLISHED)" scripts/release-pages.sh $(BIN)/pages
	install -d $(PREFIX)/share/man/man1 $(addprefix $(PREFIX)/,$(dir $(INSTALLED)))
	install -m 0755 $(BIN)/kubectl-ocm $(PREFIX)/bin/kubectl-ocm
	ln -sf kubectl-ocm $(PREFIX)/bin/kubectl_complete-ocm
	install -m 0644 $(BIN)/pages/man/man1/*.1 $(PREFIX)/share/man/man1
	install -m 0644 $(BIN)/pages/completions/kubectl-ocm.bash $(PREFIX)/share/bash-completion/completions/kubectl-ocm
	install -m 0644 $(BIN)/pages/completions/_kubectl-ocm $(PREFIX)/share/zsh/site-functions/_kubectl-ocm
	install -m 0644 $(BIN)/pages/completions/kubectl-ocm.fish $(PREFIX)/share/fish/vendor_completions.d/kubectl-ocm.fish
	@if [ -n "$(CLUSTERADM)" ]; then ln -sf kubectl-ocm $(PREFIX)/bin/clusteradm; fi
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'Add it to your PATH: export PATH=$(PREFIX)/bin:$$PATH' ;; esac

.PHONY: uninstall
uninstall: ## Remove what make install has installed under $(PREFIX)
	rm -f $(addprefix $(PREFIX)/,$(INSTALLED)) $(PREFIX)/share/man/man1/kubectl-ocm.1 $(PREFIX)/share/man/man1/kubectl-ocm-*.1
	@if [ "$$(readlink $(PREFIX)/bin/clusteradm)" = kubectl-ocm ]; then rm $(PREFIX)/bin/clusteradm; fi

.PHONY: generate
generate: ## Regenerate everything that is generated
	$(GO) generate ./...

.PHONY: tidy
tidy:
	$(GO) mod tidy
	cd cmd/localkube && for mod in go.mod versions/*.mod; do $(GO) mod tidy -modfile=$$mod || exit 1; done
	cd examples/heartbeat && $(GO) mod tidy
	cd e2e/managedserviceaccount && $(GO) mod tidy
	cd e2e/awsiamauthenticator && $(GO) mod tidy
	cd e2e/registry && $(GO) mod tidy
	cd release && $(GO) mod tidy
	cd e2e/kind && $(GO) mod tidy

.PHONY: lint
lint: ## Run the linters
	$(GO) tool -modfile=scripts/actionlint.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	$(TOOL) golangci-lint run ./...
	for module in examples/heartbeat e2e/registry e2e/kind release; do \
		(cd $$module && $(GO) tool -modfile=$(CURDIR)/scripts/go.tools.mod golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || exit 1; \
	done

.PHONY: verify
verify: ## Regenerate, tidy and lint; fail when that changes a file
	@scripts/verify.sh

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) dist

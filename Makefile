# make          builds ./kevy
# make test     what README names: every test under the race detector
# make ci       the whole gate, as CI runs it (installs Debian packages, needs root)
GO ?= go

.PHONY: all build test lint fuzz oracle kill pitr tour drill clients examples bench compare ci clean

all: build

build:
	$(GO) build -o kevy ./cmd/kevy

test:
	$(GO) test -race ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
	golangci-lint run

# a long run of the random comparison with redis-server
oracle:
	$(GO) test ./internal/testkit/oracle -run TestStream -oracle.time 5m -v

# SIGKILL under load, 100 rounds for each appendfsync policy
kill:
	$(GO) test ./internal/testkit/killloop -timeout 60m -kill.rounds 100 -v

# restore to 200 recorded cursors and times of half an hour under load
pitr:
	$(GO) test ./internal/testkit/pitr -timeout 2h -pitr.time 30m -pitr.points 200 -v

fuzz:
	bash .ci/fuzz 60s

tour: build
	bash docs/tour.sh ./kevy

drill: build
	bash docs/drill.sh ./kevy

clients: build
	bash test/clients/run ./kevy

examples:
	STEPS=examples bash .ci/run

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

compare:
	bash bench/compare.sh

ci:
	bash .ci/run

clean:
	rm -f kevy

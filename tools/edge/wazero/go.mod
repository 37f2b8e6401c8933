// What `go build github.com/tetratelabs/wazero/cmd/wazero` builds (tools/setup.sh edge).
module wick.invalid/edge

go 1.25.0

require (
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/sys v0.44.0 // indirect
)

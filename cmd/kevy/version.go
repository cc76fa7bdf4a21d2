package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker (-X main.version=...) when a release is built.
var version = "dev"

// commit returns the revision the binary was built from, empty if unknown.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return ""
}

func versionLine() string {
	c := commit()
	if c == "" {
		c = "unknown"
	}
	return fmt.Sprintf("kevy %s (commit %s, %s, %s/%s)", version, c, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

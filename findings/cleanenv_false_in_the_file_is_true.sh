#!/usr/bin/env bash
# cleanenv 1.5.0 (settings from files and the environment for Go): false, 0 and an empty text of the file give way to
# the default of the field. false is true.
#
# Guess: what the file says. The documentation has the default for fields of which no value was found.
# Seen: with retry: false, workers: 0 and prefix: "" in the file the fields are true, 8 and jobs, their defaults. Of the
# environment false and 0 are taken.
#
# Who it hurts: whoever switches something off in the file: it stays on, and nothing tells of it.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
printf 'retry: false\nworkers: 0\nprefix: ""\n' > config.yml
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"os"

	"github.com/ilyakaznacheev/cleanenv"
)

type settings struct {
	Retry   bool   `yaml:"retry" env:"SEEN_RETRY" env-default:"true"`
	Workers int    `yaml:"workers" env:"SEEN_WORKERS" env-default:"8"`
	Prefix  string `yaml:"prefix" env:"SEEN_PREFIX" env-default:"jobs"`
}

func main() {
	var file, environment settings
	fmt.Print(cleanenv.ReadConfig("config.yml", &file), file, "; ")
	os.Setenv("SEEN_RETRY", "false")
	os.Setenv("SEEN_WORKERS", "0")
	fmt.Print(cleanenv.ReadEnv(&environment), environment)
}
PROGRAM
{ go mod init example && go get github.com/ilyakaznacheev/cleanenv@v1.5.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "cleanenv 1.5.0, error and settings of the file, and of the environment: $seen"
[ "$seen" = "<nil> {true 8 jobs}; <nil> {false 0 jobs}" ]

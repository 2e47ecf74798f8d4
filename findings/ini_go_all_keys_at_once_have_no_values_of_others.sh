#!/usr/bin/env bash
# gopkg.in/ini.v1 1.68.0 (INI files for Go): a value that names another one is put together if it is asked for, and not
# if all values of a section are asked for.
#
# Guess: KeysHash() has the values that Key() has: by its documentation it is the map of the names and values.
# Seen: with home = data and queue = %(home)s/queue Key("queue") is data/queue, and KeysHash()["queue"] is
# %(home)s/queue. A struct filled by MapTo() has data/queue.
#
# Who it hurts: whoever hands a section on as a map, to a template, a log or the environment of a process: paths and
# addresses have the name in them in place of the value.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"gopkg.in/ini.v1"
)

func main() {
	file, err := ini.Load([]byte("[paths]\nhome = data\nqueue = %(home)s/queue\n"))
	if err != nil {
		panic(err)
	}
	paths := file.Section("paths")
	var mapped struct {
		Queue string `ini:"queue"`
	}
	err = paths.MapTo(&mapped)
	fmt.Println(paths.Key("queue"), mapped.Queue, err, paths.KeysHash()["queue"])
}
PROGRAM
{ go mod init example && go get gopkg.in/ini.v1@v1.68.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "ini.v1 1.68.0, queue by Key(), by MapTo() and by KeysHash(): $seen"
[ "$seen" = "data/queue data/queue <nil> %(home)s/queue" ]

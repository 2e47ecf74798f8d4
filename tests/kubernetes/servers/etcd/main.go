// SPDX-License-Identifier: Apache-2.0

// etcd as it is released: where the API server keeps everything.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }

// SPDX-License-Identifier: Apache-2.0

// The first process of each pod: it holds the pod's namespaces, and waits until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}

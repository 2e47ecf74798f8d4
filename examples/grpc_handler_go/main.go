// A handler that is a server: adds up what each customer spent, as ../grpc_handler/server.py does.
// It works on several items at a time, stops working on those that it is told to abandon, and ends
// on SIGTERM when it has answered what it has.
//
//	./generate      # once: makes Go of the protos; needs protoc, which scripts/demo installs
//	go run .        # listens on localhost:7800
//	muster run ../grpc_handler/job.yaml --input ../grpc_handler/purchases.csv
//
// docs/grpc_handlers.md is the contract.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"muster.example/totals/musterv1"
)

func main() {
	address := "localhost:7800"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	// Processors ping a silent connection every 30 s. Unless told otherwise, gRPC for Go may take that
	// for an attack.
	server := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second}))
	totals := newServer(total)
	musterv1.RegisterHandlerServiceServer(server, totals)

	told, forget := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("listening on port %d\n", listener.Addr().(*net.TCPAddr).Port)
	select {
	case err := <-failed:
		log.Fatal(err)
	case <-told.Done():
	}
	forget() // told again, it ends at once
	totals.drain()
	server.GracefulStop()
}

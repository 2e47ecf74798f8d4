// SPDX-License-Identifier: Apache-2.0

// Holds a compose file to the schema of the Compose specification, and to what compose makes of it: the
// library is the one that docker compose reads its files with. No engine runs.
//
//	compose_schema FILE
//
// Ends with 1 and what is wrong.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func load(path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	fmt.Printf("%d services, %d volumes\n", len(project.Services), len(project.Volumes))
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compose_schema FILE")
		os.Exit(2)
	}
	if err := load(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Asynq's side of bench/mesh/mesh_bench.
//
//	asynq_bench work REDIS_URL         two workers, until SIGTERM
//	asynq_bench tiny REDIS_URL FILE    each line of FILE is an item, with nothing to do
//	asynq_bench retail REDIS_URL FILE  the retail job
//
// `tiny` and `retail` return when each item has been handled, and print a line of JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	workers   = 2
	producers = 16        // An enqueue waits for Redis, and Asynq has no call for many tasks at once.
	handled   = "handled" // A hash: the result of each item.
	ready     = "ready"   // The number of ready workers.
	// The default of a second would add a pause whenever the workers overtake the producers.
	emptyPause = 10 * time.Millisecond
	poll       = 5 * time.Millisecond
)

// How the items of each kind are read from a file.
var readers = map[string]func(string) iter.Seq[[]byte]{"tiny": lines, "retail": retailItems}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: asynq_bench work URL | tiny|retail URL FILE")
	}
	connection, err := asynq.ParseRedisURI(os.Args[2])
	check(err)
	options, err := redis.ParseURL(os.Args[2])
	check(err)
	store := redis.NewClient(options)
	verb := os.Args[1]
	switch {
	case verb == "work":
		work(connection, store)
	case readers[verb] != nil && len(os.Args) == 4:
		produce(connection, store, verb, os.Args[3])
	default:
		log.Fatalf("unknown verb %q", verb)
	}
}

func work(connection asynq.RedisConnOpt, store *redis.Client) {
	server := asynq.NewServer(connection, asynq.Config{
		Concurrency:       workers,
		TaskCheckInterval: emptyPause,
		LogLevel:          asynq.WarnLevel,
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc("tiny", countItem(store))
	mux.HandleFunc("retail", billItem(store))
	check(server.Start(mux))
	check(store.IncrBy(context.Background(), ready, workers).Err())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	server.Shutdown()
}

// Only counts the item before it is acknowledged.
func countItem(store *redis.Client) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		item, err := strconv.Atoi(string(task.Payload()))
		if err != nil {
			return fmt.Errorf("no item: %w", asynq.SkipRetry)
		}
		return store.HIncrBy(ctx, handled, strconv.Itoa(item), 1).Err()
	}
}

// Stores the item's totals before it is acknowledged; a second store writes the same value.
func billItem(store *redis.Client) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		totals, err := bill(task.Payload())
		if err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		return store.HSet(ctx, handled, task.ResultWriter().TaskID(), totals).Err()
	}
}

func produce(connection asynq.RedisConnOpt, store *redis.Client, kind, path string) {
	items := readers[kind]
	client := asynq.NewClient(connection)
	defer client.Close()
	next, stop := iter.Pull(items(path))
	first, isThere := next()
	stop()
	if !isThere {
		log.Fatal("there are no items")
	}
	enqueue(client, kind, slices.Values([][]byte{first}))
	awaitItems(store, 1)
	check(store.Del(context.Background(), handled).Err())

	began, cpuBefore := time.Now(), cpuSeconds()
	count := enqueue(client, kind, items(path))
	awaitItems(store, count)
	seconds := time.Since(began).Seconds()
	cpu := cpuSeconds() - cpuBefore
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"items":       count,
		"seconds":     seconds,
		"cpu_seconds": cpu,
	}))
}

// Returns the number of items.
func enqueue(client *asynq.Client, kind string, items iter.Seq[[]byte]) int {
	next := make(chan []byte)
	var running sync.WaitGroup
	for range producers {
		running.Add(1)
		go func() {
			defer running.Done()
			for item := range next {
				_, err := client.Enqueue(asynq.NewTask(kind, item))
				check(err)
			}
		}()
	}
	count := 0
	for item := range items {
		next <- item
		count++
	}
	close(next)
	running.Wait()
	return count
}

// Returns when that many different items are counted.
func awaitItems(store *redis.Client, items int) {
	for {
		count, err := store.HLen(context.Background(), handled).Result()
		check(err)
		if int(count) >= items {
			return
		}
		time.Sleep(poll)
	}
}

// User and system time of this process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func lines(path string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		text, err := os.ReadFile(path)
		check(err)
		for line := range bytes.Lines(text) {
			if !yield(bytes.TrimSpace(line)) {
				return
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Asynq's side of the part `tiny` of bench/mesh/mesh_bench.
//
//	asynq_bench work REDIS_URL          two workers, until SIGTERM
//	asynq_bench produce REDIS_URL FILE  each line of FILE is an item; prints a line of JSON
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	workers   = 2
	producers = 16        // An enqueue awaits Redis, and there is none for many tasks at once.
	handled   = "handled" // A hash: how often each item was handled.
	ready     = "ready"   // How many workers are.
	// The default of a second would be a pause whenever the workers are ahead of the producers.
	emptyPause = 10 * time.Millisecond
	poll       = 5 * time.Millisecond
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: asynq_bench work URL | produce URL FILE")
	}
	connection, err := asynq.ParseRedisURI(os.Args[2])
	check(err)
	options, err := redis.ParseURL(os.Args[2])
	check(err)
	counts := redis.NewClient(options)
	switch {
	case os.Args[1] == "work":
		work(connection, counts)
	case os.Args[1] == "produce" && len(os.Args) == 4:
		produce(connection, counts, readLines(os.Args[3]))
	default:
		log.Fatalf("unknown verb %q", os.Args[1])
	}
}

// The handler does nothing but count the item before it is acknowledged.
func work(connection asynq.RedisConnOpt, counts *redis.Client) {
	server := asynq.NewServer(connection, asynq.Config{
		Concurrency:       workers,
		TaskCheckInterval: emptyPause,
		LogLevel:          asynq.WarnLevel,
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc("item", func(ctx context.Context, task *asynq.Task) error {
		item, err := strconv.Atoi(string(task.Payload()))
		if err != nil {
			return fmt.Errorf("no item: %w", asynq.SkipRetry)
		}
		return counts.HIncrBy(ctx, handled, strconv.Itoa(item), 1).Err()
	})
	check(server.Start(mux))
	check(counts.IncrBy(context.Background(), ready, workers).Err())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	server.Shutdown()
}

func produce(connection asynq.RedisConnOpt, counts *redis.Client, lines []string) {
	client := asynq.NewClient(connection)
	defer client.Close()
	enqueue(client, lines[:1])
	awaitItems(counts, 1)
	check(counts.Del(context.Background(), handled).Err())

	began, cpuBefore := time.Now(), cpuSeconds()
	enqueue(client, lines)
	awaitItems(counts, len(lines))
	seconds := time.Since(began).Seconds()
	cpu := cpuSeconds() - cpuBefore
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"items":            len(lines),
		"handled":          timesHandled(counts),
		"seconds":          seconds,
		"items_per_second": float64(len(lines)) / seconds,
		"cpu_seconds":      cpu,
	}))
}

func enqueue(client *asynq.Client, lines []string) {
	next := make(chan string, len(lines))
	for _, line := range lines {
		next <- line
	}
	close(next)
	var running sync.WaitGroup
	for i := 0; i < producers; i++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for line := range next {
				_, err := client.Enqueue(asynq.NewTask("item", []byte(line)))
				check(err)
			}
		}()
	}
	running.Wait()
}

// Returns when so many different items are counted.
func awaitItems(counts *redis.Client, items int) {
	for {
		count, err := counts.HLen(context.Background(), handled).Result()
		check(err)
		if int(count) >= items {
			return
		}
		time.Sleep(poll)
	}
}

// How often any item was handled, added up.
func timesHandled(counts *redis.Client) int {
	times, err := counts.HVals(context.Background(), handled).Result()
	check(err)
	sum := 0
	for _, text := range times {
		count, err := strconv.Atoi(text)
		check(err)
		sum += count
	}
	return sum
}

// User and system time of this process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func readLines(path string) []string {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		lines = append(lines, strings.TrimSpace(scanner.Text()))
	}
	check(scanner.Err())
	if len(lines) == 0 {
		log.Fatalf("%s has no lines", path)
	}
	return lines
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

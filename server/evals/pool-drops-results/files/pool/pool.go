// Package pool does many jobs at once.
package pool

import "sync"

type result struct {
	index int
	value string
	err   error
}

// Map calls work for every index below count, at most workers at once, and returns the values in the order of the
// indexes. After an error no further job is begun; those under way are waited for, and the error of the job with the
// lowest index is returned, with no values. With fewer than one worker there is one.
func Map(workers, count int, work func(index int) (string, error)) ([]string, error) {
	var wait sync.WaitGroup
	jobs := make(chan int)
	results := make(chan result, workers)
	for n := 0; n < workers; n++ {
		go func() {
			wait.Add(1)
			defer wait.Done()
			for index := range jobs {
				value, err := work(index)
				results <- result{index, value, err}
			}
		}()
	}
	values := make([]string, count)
	var failed error
	go func() {
		for found := range results {
			if found.err != nil {
				failed = found.err
			}
			values[found.index] = found.value
		}
	}()
	for index := 0; index < count && failed == nil; index++ {
		jobs <- index
	}
	close(jobs)
	wait.Wait()
	if failed != nil {
		return nil, failed
	}
	return values, nil
}

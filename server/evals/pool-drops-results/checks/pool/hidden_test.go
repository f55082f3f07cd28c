package pool

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func within(t *testing.T, what func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); what() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}

func TestNothingIsDropped(t *testing.T) {
	for round := 0; round < 200; round++ {
		within(t, func() {
			values, err := Map(4, 50, func(i int) (string, error) {
				if i > 45 {
					time.Sleep(time.Millisecond)
				}
				return fmt.Sprint(i), nil
			})
			if err != nil || len(values) != 50 {
				t.Fatal(values, err)
			}
			for i, value := range values {
				if value != fmt.Sprint(i) {
					t.Fatalf("%d is %q", i, value)
				}
			}
		})
	}
}

func TestTheErrorOfTheLowestIndexIsTold(t *testing.T) {
	for round := 0; round < 50; round++ {
		within(t, func() {
			var begun int64
			values, err := Map(4, 1000, func(i int) (string, error) {
				atomic.AddInt64(&begun, 1)
				if i == 2 {
					time.Sleep(3 * time.Millisecond)
					return "x", errors.New("two")
				}
				if i == 3 {
					return "x", errors.New("three")
				}
				time.Sleep(time.Millisecond)
				return "", nil
			})
			if values != nil || err == nil || err.Error() != "two" {
				t.Fatal(values, err)
			}
			if begun > 100 {
				t.Fatal("jobs were begun after the error:", begun)
			}
		})
	}
}

func TestNoMoreThanWorkersAtOnceAndNoneLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	var now, most int64
	within(t, func() {
		Map(3, 60, func(i int) (string, error) {
			if n := atomic.AddInt64(&now, 1); n > atomic.LoadInt64(&most) {
				atomic.StoreInt64(&most, n)
			}
			time.Sleep(time.Millisecond)
			atomic.AddInt64(&now, -1)
			return "", nil
		})
	})
	if most > 3 || most < 2 {
		t.Fatal("at once:", most)
	}
	for wait := 0; runtime.NumGoroutine() > before+1 && wait < 100; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before+1 {
		t.Fatal("goroutines are left:", before, now)
	}
}

func TestFewWorkersAndNoJobs(t *testing.T) {
	within(t, func() {
		values, err := Map(0, 2, func(i int) (string, error) { return "v", nil })
		if err != nil || len(values) != 2 || values[1] != "v" {
			t.Fatal(values, err)
		}
		if values, err = Map(4, 0, nil); err != nil || values == nil || len(values) != 0 {
			t.Fatal(values, err)
		}
	})
}

package session_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/site/session"
)

func TestStoresKnowNothingOfOneAnother(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	a, b := session.New(clock, time.Minute), session.New(clock, time.Hour)
	ida, _ := a.Open("ann")
	idb, _ := b.Open("ben")
	if ida != "s1" || idb != "s1" {
		t.Fatal(ida, idb)
	}
	now = now.Add(time.Minute)
	if user, err := a.Get(ida); user != "ann" || err != nil {
		t.Fatal(user, err)
	}
	now = now.Add(time.Minute + 1)
	if a.Count() != 0 || b.Count() != 1 {
		t.Fatal(a.Count(), b.Count())
	}
	if _, err := a.Get(ida); !errors.Is(err, session.ErrOver) || err.Error() != "s1: the session is over" {
		t.Fatal(err)
	}
	if a.Close(ida) || !b.Close(idb) || b.Close(idb) {
		t.Fatal("close")
	}
	if _, err := a.Open(""); err == nil || err.Error() != "nobody cannot sign in" {
		t.Fatal(err)
	}
}

func TestFromSeveralGoroutines(t *testing.T) {
	store := session.New(time.Now, time.Hour)
	var wait sync.WaitGroup
	for n := 0; n < 50; n++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			id, _ := store.Open("x")
			store.Get(id)
			store.Count()
		}()
	}
	wait.Wait()
	if store.Count() != 50 {
		t.Fatal(store.Count())
	}
}

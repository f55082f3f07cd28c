package session

import (
	"testing"
	"time"
)

func TestASessionEndsWhenItIsNotUsed(t *testing.T) {
	now := time.Unix(1000, 0)
	Now = func() time.Time { return now }
	defer func() { Now = time.Now }()
	id, _ := Open("ann")
	now = now.Add(Life)
	if user, err := Get(id); user != "ann" || err != nil {
		t.Fatal(user, err)
	}
	now = now.Add(Life + 1)
	if _, err := Get(id); err == nil {
		t.Fatal("it goes on")
	}
}

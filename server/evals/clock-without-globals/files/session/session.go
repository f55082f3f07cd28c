// Package session knows who is signed in.
package session

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	lock     sync.Mutex
	sessions = map[string]entry{}
	numbers  int

	// Now tells the time; tests put their own clock here.
	Now = time.Now
	// Life is how long a session lasts after it was last used.
	Life = 30 * time.Minute
)

type entry struct {
	user string
	used time.Time
}

// ErrOver is what is said of a session that has ended or never was.
var ErrOver = errors.New("the session is over")

// Open begins a session of user and returns its id.
func Open(user string) (string, error) {
	if user == "" {
		return "", errors.New("nobody cannot sign in")
	}
	lock.Lock()
	defer lock.Unlock()
	numbers++
	id := fmt.Sprintf("s%d", numbers)
	sessions[id] = entry{user, Now()}
	return id, nil
}

// Get returns the user of a session and lets it last longer.
func Get(id string) (string, error) {
	lock.Lock()
	defer lock.Unlock()
	found, there := sessions[id]
	if !there || Now().Sub(found.used) > Life {
		delete(sessions, id)
		return "", fmt.Errorf("%s: %w", id, ErrOver)
	}
	found.used = Now()
	sessions[id] = found
	return found.user, nil
}

// Close ends a session; false where there was none.
func Close(id string) bool {
	_, err := Get(id)
	lock.Lock()
	defer lock.Unlock()
	delete(sessions, id)
	return err == nil
}

// Count is how many sessions have not ended.
func Count() int {
	lock.Lock()
	defer lock.Unlock()
	for id, found := range sessions {
		if Now().Sub(found.used) > Life {
			delete(sessions, id)
		}
	}
	return len(sessions)
}

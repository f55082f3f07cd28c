// Package web answers requests.
package web

import (
	"errors"

	"example.com/site/session"
)

// Server answers with lines of text.
type Server struct{}

// Login signs a user in; the answer is the session's id.
func (Server) Login(user string) string {
	id, err := session.Open(user)
	if err != nil {
		return "error: " + err.Error()
	}
	return id
}

// Page is the page of whoever is signed in.
func (Server) Page(id string) string {
	user, err := session.Get(id)
	if errors.Is(err, session.ErrOver) {
		return "please sign in"
	}
	return "hello " + user
}

// Logout signs out.
func (Server) Logout(id string) string {
	if session.Close(id) {
		return "goodbye"
	}
	return "you were not here"
}

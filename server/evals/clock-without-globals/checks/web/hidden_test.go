package web_test

import (
	"testing"
	"time"

	"example.com/site/session"
	"example.com/site/web"
)

func TestAnswersAreAsTheyWere(t *testing.T) {
	server := web.New(session.New(time.Now, time.Hour))
	id := server.Login("ben")
	for said, want := range map[string]string{
		server.Page(id):    "hello ben",
		server.Page("s99"): "please sign in",
		server.Login(""):   "error: nobody cannot sign in",
		server.Logout(id):  "goodbye",
		server.Logout("x"): "you were not here",
	} {
		if said != want {
			t.Errorf("%q, not %q", said, want)
		}
	}
}

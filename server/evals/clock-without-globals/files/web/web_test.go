package web

import "testing"

func TestInAndOut(t *testing.T) {
	var server Server
	id := server.Login("ben")
	if page := server.Page(id); page != "hello ben" {
		t.Fatal(page)
	}
	if said := server.Logout(id); said != "goodbye" {
		t.Fatal(said)
	}
}

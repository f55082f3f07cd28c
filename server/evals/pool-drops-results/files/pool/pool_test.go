package pool

import (
	"fmt"
	"testing"
)

func TestValuesComeInOrder(t *testing.T) {
	values, err := Map(1, 3, func(i int) (string, error) { return fmt.Sprint(i), nil })
	if err != nil || len(values) != 3 || values[0] != "0" {
		t.Fatal(values, err)
	}
}

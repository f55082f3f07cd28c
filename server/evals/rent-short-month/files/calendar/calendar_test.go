package calendar

import "testing"

func TestAMonthLater(t *testing.T) {
	if found := AddMonths(Day(2023, 4, 5), 1); !found.Equal(Day(2023, 5, 5)) {
		t.Fatal(found)
	}
}

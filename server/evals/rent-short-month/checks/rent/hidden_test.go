package rent

import (
	"testing"
	"time"

	"example.com/rent/calendar"
)

func shown(days []time.Time) string {
	text := ""
	for _, day := range days {
		text += day.Format("0102 ")
	}
	return text
}

func TestDaysThatAMonthDoesNotHave(t *testing.T) {
	for _, c := range []struct {
		begins, until time.Time
		want          string
	}{
		{calendar.Day(2023, 1, 31), calendar.Day(2023, 6, 30), "0228 0331 0430 0531 0630 "},
		{calendar.Day(2023, 1, 31), calendar.Day(2023, 6, 29), "0228 0331 0430 0531 "},
		{calendar.Day(2022, 11, 30), calendar.Day(2023, 4, 1), "1230 0130 0228 0330 "},
		{calendar.Day(2023, 12, 29), calendar.Day(2024, 3, 31), "0129 0229 0329 "},
		{calendar.Day(2024, 2, 29), calendar.Day(2024, 5, 29), "0329 0429 0529 "},
		{calendar.Day(2024, 2, 29), calendar.Day(2024, 5, 28), "0329 0429 "},
		{calendar.Day(2023, 12, 31), calendar.Day(2024, 12, 31), "0131 0229 0331 0430 0531 0630 0731 0831 0930 1031 1130 1231 "},
	} {
		if found := shown((Contract{Begins: c.begins}).Due(c.until)); found != c.want {
			t.Errorf("from %s: %s, not %s", c.begins.Format("0102"), found, c.want)
		}
	}
}

func TestEveryMonthHasOneInvoice(t *testing.T) {
	c := []Contract{{"Sato", calendar.Day(2020, 1, 31), 100}, {"Ono", calendar.Day(2019, 12, 30), 100}}
	for year := 2021; year < 2026; year++ {
		for month := time.January; month <= time.December; month++ {
			if found := Invoices(c, year, month); len(found) != 2 {
				t.Errorf("%d-%d: %v", year, month, found)
			}
		}
	}
}

func TestMonthsBack(t *testing.T) {
	if found := calendar.AddMonths(calendar.Day(2023, 3, 31), -1); !found.Equal(calendar.Day(2023, 2, 28)) {
		t.Error(found)
	}
	if found := calendar.AddMonths(calendar.Day(2024, 2, 29), 12); !found.Equal(calendar.Day(2025, 2, 28)) {
		t.Error(found)
	}
}

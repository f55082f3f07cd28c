package rent

import (
	"reflect"
	"testing"

	"example.com/rent/calendar"
)

func TestInvoicesOfAMonth(t *testing.T) {
	found := Invoices([]Contract{{"Ito", calendar.Day(2023, 1, 15), 65050}}, 2023, 3)
	if !reflect.DeepEqual(found, []string{"Ito: 650.50 on 15 March 2023"}) {
		t.Fatal(found)
	}
}

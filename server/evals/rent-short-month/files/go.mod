module example.com/rent

go 1.19

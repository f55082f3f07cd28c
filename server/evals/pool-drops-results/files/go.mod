module example.com/checksums

go 1.19

"""Tables of facts about programs: which only read, which use the network, which run other programs."""

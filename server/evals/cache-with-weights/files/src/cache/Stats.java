package cache;

/** How often a cache had what was asked for, and how many values had to go. */
public final class Stats {
    private int hits;
    private int misses;
    private int gone;

    void hit() {
        hits++;
    }

    void miss() {
        misses++;
    }

    void gone() {
        gone++;
    }

    @Override
    public String toString() {
        return hits + " hits, " + misses + " misses, " + gone + " gone";
    }
}

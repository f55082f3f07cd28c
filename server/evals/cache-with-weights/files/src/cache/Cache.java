package cache;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/** Keeps values that are dear to make. When it is full, the value that was not used for the longest time goes. */
public final class Cache<K, V> {
    private final int most;
    private final Map<K, V> kept = new LinkedHashMap<>(16, 0.75f, true);
    private final Stats stats = new Stats();

    /** A cache of at most so many entries. */
    public Cache(int most) {
        if (most < 1) {
            throw new IllegalArgumentException("room for at least one entry is needed");
        }
        this.most = most;
    }

    /** The value of key, made by make where it is not kept. What make throws is thrown, and nothing is kept. */
    public V get(K key, Function<K, V> make) {
        V found = kept.get(key);
        if (found != null) {
            stats.hit();
            return found;
        }
        stats.miss();
        V made = make.apply(key);
        put(key, made);
        return made;
    }

    /** Keeps a value; one of the same key is replaced, and is then the one used last. */
    public void put(K key, V value) {
        kept.put(key, value);
        if (kept.size() > most) {
            K eldest = kept.keySet().iterator().next();
            kept.remove(eldest);
            stats.gone();
        }
    }

    /** True where the key's value is kept; this is no use of it. */
    public boolean holds(K key) {
        return kept.containsKey(key);
    }

    public int size() {
        return kept.size();
    }

    public Stats stats() {
        return stats;
    }
}

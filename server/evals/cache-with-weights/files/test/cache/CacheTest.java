package cache;

public final class CacheTest {
    public static void main(String[] args) {
        Cache<String, Integer> cache = new Cache<>(2);
        cache.get("a", String::length);
        cache.get("bb", String::length);
        cache.get("a", String::length);
        cache.get("ccc", String::length);
        Check.that(cache.holds("a") && !cache.holds("bb") && cache.size() == 2, "the eldest goes");
        Check.that(cache.stats().toString().equals("1 hits, 3 misses, 1 gone"), cache.stats().toString());
    }
}

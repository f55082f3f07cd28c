package cache;

public final class HiddenTest {
    private static int calls = 0;

    public static void main(String[] args) {
        Cache<String, String> cache = new Cache<>(10, (key, value) -> { calls++; return value.length(); });
        cache.put("a", "12345");
        cache.put("b", "12345");
        cache.put("a", "1");
        that(cache.weight() == 6, "a replaced value weighs no more: " + cache.weight());
        cache.put("c", "123456");
        that(cache.holds("a") && !cache.holds("b") && cache.holds("c"), "a replaced value is the one used last");
        that(cache.weight() == 7, "weight " + cache.weight());
        cache.put("a", "12345678901");
        that(!cache.holds("a") && cache.weight() == 6, "the old value of a key must not stay for a too heavy one");
        cache.put("z", "");
        that(cache.holds("z") && cache.weight() == 6, "what weighs nothing is kept");
        cache.put("c", "1234567890");
        that(cache.holds("z") && cache.holds("c"), "what is at the bound is kept: " + cache.weight());
        try {
            cache.get("bad", key -> { throw new IllegalStateException("no"); });
            throw new AssertionError("nothing was thrown");
        } catch (IllegalStateException right) {
            that(!cache.holds("bad") && cache.weight() == 10, "nothing is kept");
        }
        Cache<String, String> other = new Cache<>(4, (key, value) -> value.equals("bad") ? -1 : value.length());
        other.put("k", "1234");
        try {
            other.put("k", "bad");
            throw new AssertionError("a negative weight was taken");
        } catch (IllegalArgumentException right) {
            that(other.holds("k") && other.weight() == 4, "a refused value changes nothing");
        }
        Cache<Integer, Integer> many = new Cache<>(3);
        for (int n = 0; n < 10; n++) {
            many.put(n, n);
        }
        that(many.size() == 3 && many.weight() == 3 && many.stats().toString().equals("0 hits, 0 misses, 7 gone"), many.stats().toString());
        try {
            new Cache<Integer, Integer>(0);
            throw new AssertionError("no room was taken");
        } catch (IllegalArgumentException right) {
            // as it should be
        }
    }

    private static void that(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }
}

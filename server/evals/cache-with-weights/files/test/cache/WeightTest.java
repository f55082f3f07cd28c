package cache;

public final class WeightTest {
    public static void main(String[] args) {
        Cache<String, String> cache = new Cache<>(10, (key, value) -> value.length());
        cache.put("a", "1234");
        cache.put("b", "1234");
        Check.that(cache.weight() == 8, "the weight of all");
        cache.put("c", "123456");
        Check.that(!cache.holds("a") && cache.holds("b") && cache.weight() == 10, "as many go as have to");
        cache.put("d", "12345678901");
        Check.that(!cache.holds("d") && cache.holds("b") && cache.holds("c"), "what is heavier than all room is not kept");
        Check.that(cache.get("e", key -> "12345678901").length() == 11 && cache.size() == 2, "but it is given");
        try {
            new Cache<String, String>(5, (key, value) -> -1).put("x", "x");
            throw new IllegalStateException("a negative weight was taken");
        } catch (IllegalArgumentException right) {
            // as it should be
        }
    }
}

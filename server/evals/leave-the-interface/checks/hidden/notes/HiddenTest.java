package notes;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

public final class HiddenTest {
    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("notes");
        FileStore store = new FileStore(folder);
        store.put(new Note("a", "old"));
        Files.writeString(folder.resolve("bad.note"), "something else");
        Files.write(folder.resolve("torn.note"), new byte[] {'n', 'o', 't', 'e', ' ', '1', '\n', (byte) 0xff});
        long before = handles();
        for (int n = 0; n < 200; n++) {
            refused(store, "bad");
            refused(store, "torn");
            store.names();
        }
        long after = handles();
        check(after <= before + 5, "handles are left open: " + before + ", then " + after);

        // The old text is in its file until the new one is whole: a second name of the file still holds it.
        Path second = folder.resolve("second");
        Files.createLink(second, folder.resolve("a.note"));
        store.put(new Note("a", "new"));
        check(Files.readString(second).equals("note 1\nold"), "the note was written over in place");
        check(store.get("a").text().equals("new"), "the new text");
        Files.delete(second);
        store.put(new Note("a", "x\ry\u3042"));
        check(store.get("a").text().equals("x\ry\u3042"), "the text as it was");

        Files.createDirectories(folder.resolve("full.note").resolve("x"));
        try {
            store.put(new Note("full", "text"));
            throw new AssertionError("a folder was replaced");
        } catch (IOException right) {
            check(store.names().equals(List.of("a", "bad", "full", "torn")), "the names: " + store.names());
        }
        try (Stream<Path> files = Files.list(folder)) {
            List<String> left = files.map(p -> p.getFileName().toString()).sorted().toList();
            check(left.equals(List.of("a.note", "bad.note", "full.note", "torn.note")), "left behind: " + left);
        }
    }

    private static void refused(FileStore store, String name) throws IOException {
        try {
            store.get(name);
        } catch (CharacterCodingException right) {
            return;
        } catch (IOException right) {
            check(right.getMessage().equals("not a note: " + name), right.getMessage());
            return;
        }
        throw new AssertionError(name + " was read");
    }

    private static long handles() throws IOException {
        Path open = Path.of("/proc/self/fd");
        if (!Files.isDirectory(open)) {
            return 0;
        }
        try (Stream<Path> files = Files.list(open)) {
            return files.count();
        }
    }

    private static void check(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }
}

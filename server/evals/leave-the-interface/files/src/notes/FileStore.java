package notes;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Notes as files: the first line is "note 1", then comes the text. */
public final class FileStore implements Store {
    static final String HEAD = "note 1";
    private static final String END = ".note";
    private final Path folder;

    public FileStore(Path folder) throws IOException {
        this.folder = Files.createDirectories(folder);
    }

    @Override
    public void put(Note note) throws IOException {
        Writer writer = new OutputStreamWriter(new FileOutputStream(file(note.name()).toFile()), StandardCharsets.UTF_8);
        writer.write(HEAD + "\n");
        writer.write(note.text());
        writer.close();
    }

    @Override
    public Note get(String name) throws IOException {
        if (!Files.exists(file(name))) {
            return null;
        }
        BufferedReader reader = Files.newBufferedReader(file(name));
        if (!HEAD.equals(reader.readLine())) {
            throw new IOException("not a note: " + name);
        }
        StringBuilder text = new StringBuilder();
        for (int c = reader.read(); c >= 0; c = reader.read()) {
            text.append((char) c);
        }
        reader.close();
        return new Note(name, text.toString());
    }

    @Override
    public List<String> names() throws IOException {
        Stream<Path> files = Files.list(folder);
        return files.map(path -> path.getFileName().toString())
                .filter(name -> name.endsWith(END))
                .map(name -> name.substring(0, name.length() - END.length()))
                .sorted()
                .toList();
    }

    private Path file(String name) {
        return folder.resolve(name + END);
    }
}

use std::process::Command;

fn sum(name: &str, text: &str, column: &str) -> (i32, String, String) {
    let file = std::env::temp_dir().join(format!("hidden-{}-{name}.csv", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let shown = file.display().to_string();
    let (code, out, err) = run(&[&shown, column]);
    (code, out, err.replace(&shown, "FILE"))
}

fn run(args: &[&str]) -> (i32, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_sum")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

fn wrong(found: (i32, String, String), said: &str) {
    assert_eq!(found, (1, String::new(), format!("sum: FILE{said}\n")));
}

#[test]
fn usage() {
    for args in [&[][..], &["x"][..], &["x", "y", "z"][..]] {
        assert_eq!(run(args), (2, String::new(), "usage: sum FILE COLUMN\n".to_string()));
    }
}

#[test]
fn files_that_cannot_be_read() {
    let (code, out, err) = run(&["no/such/file", "a"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("sum: no/such/file: No such file"), "{err}");
    assert_eq!(err.matches('\n').count(), 1);
}

#[test]
fn what_is_wrong_in_a_file() {
    wrong(sum("column", "a,b\n1,2\n", "c"), ": no column c");
    wrong(sum("empty", "", "c"), ": no column c");
    wrong(sum("number", "a,b\n1,2\n\n3,x y\n", "b"), ":4: x y is no number");
    wrong(sum("few", "a,b\n1,2\n3\n", "b"), ":3: too few fields");
    wrong(sum("large", "a\n9223372036854775807\n1\n", "a"), ": too large");
    wrong(sum("huge", "a\n9223372036854775808\n", "a"), ":2: 9223372036854775808 is no number");
}

#[test]
fn what_is_right() {
    assert_eq!(sum("blanks", "a, b \r\n 1 , 2 \r\n\r\n3,4\r\n", "b").1, "6\n");
    assert_eq!(sum("edge", "a\n9223372036854775807\n-1\n", "a"), (0, "9223372036854775806\n".into(), String::new()));
    assert_eq!(sum("none", "a\n", "a").1, "0\n");
    assert_eq!(sum("more", "a,b\n1,2,3\n", "b").1, "2\n");
}

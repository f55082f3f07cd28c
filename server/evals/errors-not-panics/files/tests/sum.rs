use std::process::Command;

#[test]
fn a_column_is_added_up() {
    let file = std::env::temp_dir().join(format!("sum-{}.csv", std::process::id()));
    std::fs::write(&file, "name,count\na,2\nb,-5").unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_sum")).arg(&file).arg("count").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "-3\n");
}

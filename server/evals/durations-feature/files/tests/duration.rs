use jobs::config::jobs;
use jobs::duration::Duration;

#[test]
fn units_are_read() {
    assert_eq!("90s".parse(), Ok(Duration(90)));
    assert_eq!("1h30m".parse(), Ok(Duration(5400)));
    assert_eq!("2d".parse(), Ok(Duration(172_800)));
}

#[test]
fn and_written_in_the_largest_units() {
    assert_eq!(Duration(90).to_string(), "1m30s");
    assert_eq!(Duration(0).to_string(), "0s");
    assert_eq!(Duration(90_061).to_string(), "1d1h1m1s");
}

#[test]
fn what_is_no_interval_is_told() {
    let wrong: Result<Duration, String> = "90".parse();
    assert_eq!(wrong, Err("90 is no interval".to_string()));
    assert_eq!(jobs("a = every 5x run b"), Err("line 1: 5x is no interval".to_string()));
}

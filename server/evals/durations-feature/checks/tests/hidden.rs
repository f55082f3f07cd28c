use jobs::config::{jobs, Job};
use jobs::duration::Duration;

#[test]
fn every_length_is_read_as_it_was_written() {
    for seconds in (0..200_000).step_by(37).chain([u64::MAX]) {
        assert_eq!(Duration(seconds).to_string().parse(), Ok(Duration(seconds)));
    }
}

#[test]
fn what_may_be_written() {
    for (text, seconds) in [("100m", 6000), ("0s", 0), ("36h", 129_600), ("1d23h59m59s", 172_799), ("1d1s", 86_401)] {
        assert_eq!(text.parse(), Ok(Duration(seconds)), "{text}");
    }
    for text in ["", "s", "1", "1h30", "30m1h", "1h1h", "1h60m", "1m60s", "1d24h", "1 h", " 1h", "-1h", "+1h", "1.5h", "1H", "1h ", "٣s", "99999999999999999999s", "300000000000000000d"] {
        let found: Result<Duration, String> = text.parse();
        assert_eq!(found, Err(format!("{text} is no interval")));
    }
}

#[test]
fn the_configuration_is_brought_along() {
    let text = include_str!("../config/jobs.conf");
    let wanted = "# Jobs and how often they run.\n# name = every INTERVAL run COMMAND\n\n\
        cleanup = every 1d run rm -rf /var/tmp/jobs\n\
        report  = every 1h30m run report --since 3600   # since an hour\n\
        ping    = every 45s run ping -c 1 example.com\n\
        backup  = every 7d run backup --keep 30\n\
        hourly  = every 1h run echo every 60 minutes\n\
        odd     = every 1d2h3m4s run true\n";
    let plain = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(|l| l.to_string() + "\n").collect::<String>();
    assert_eq!(plain(text), plain(wanted));
    let found = jobs(text).unwrap();
    assert_eq!(found[1], Job { name: "report".into(), every: Duration(5400), command: "report --since 3600".into() });
}

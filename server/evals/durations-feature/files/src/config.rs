//! The list of jobs.

use crate::duration::Duration;

#[derive(Debug, PartialEq)]
pub struct Job {
    pub name: String,
    pub every: Duration,
    pub command: String,
}

/// The jobs of a configuration; an error names the line.
pub fn jobs(text: &str) -> Result<Vec<Job>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| job(line).map_err(|why| format!("line {}: {why}", number + 1))).collect()
}

fn job(line: &str) -> Result<Job, String> {
    let (name, rest) = line.split_once('=').ok_or("no =")?;
    let rest = rest.trim().strip_prefix("every ").ok_or("no every")?;
    let (every, command) = rest.split_once(" run ").ok_or("no run")?;
    let every = Duration(every.trim().parse().map_err(|_| format!("{every} is no interval"))?);
    let command = command.split('#').next().unwrap_or("").trim().to_string();
    Ok(Job { name: name.trim().to_string(), every, command })
}

use std::env;
use std::fs;

mod table;

fn main() {
    let args: Vec<String> = env::args().collect();
    let text = fs::read_to_string(&args[1]).unwrap();
    let table = table::read(&text);
    println!("{}", table.sum(&args[2]));
}

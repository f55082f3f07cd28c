use table::Table;

fn main() {
    let mut customers = Table::new(&[8, 10]);
    customers.row(&["Anna", "Bern"]).row(&["Zoë Müller", "Zürich"]).row(&["佐藤花子", "東京都千代田区"]);
    for line in customers.lines() {
        println!("{line}");
    }
}

use exactfed_runner::manifest::Source;
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::*;
use std::sync::Arc;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let in_memory = if text.contains("r.csv") {
        [("r.csv".to_owned(), Arc::from(std::fs::read("/tmp/b/r.csv").unwrap()))].into()
    } else {
        Default::default()
    };
    let source = Source { name: "t.toml".into(), text, in_memory, ..Source::default() };
    let plan = Plan::new("t".into(), source).unwrap();
    println!("{}", plan.cells.len());
    let cells: Vec<_> = plan.cells.iter().collect();
    let files = exactfed_runner::data::DataFolder::new(std::path::Path::new("/tmp/b"), None, None);
    let prepared = prepare(&files, &cells);
    if let Ok(p) = &prepared {
        for _ in 0..1 {
            let t = std::time::Instant::now();
            run(p, 1, &Silent, |d| {
                println!("{:?}", d.elapsed);
                Ok::<_, ()>(())
            })
            .ok();
            println!("{:?}", t.elapsed());
        }
    }
    match prepared {
        Ok(p) => {
            for p in &p {
                println!("{:?}", p.tasks());
                let t = std::time::Instant::now();
                println!("{:?}", t.elapsed());
            }
        }
        Err(e) => println!("{e:?}"),
    }
}

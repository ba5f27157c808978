//! Records and settings of a dataset that are refused: for each, a part of the message that names the line, the
//! column or the setting.

use super::{Data, TABLE, records};

#[test]
fn values_that_are_no_numbers_are_named() {
    let settings = records("features = [\"age\"], clients = 2");
    for (table, message) in [
        (
            "age,label\n1,0\n2,inf\n",
            "line 3: the label is inf, not finite; replace it by a number or,",
        ),
        (
            "age,label\n1,0\n-inf,1\n",
            "line 3, column `age`: -inf is not a finite number; replace it by a number or, if it marks a missing value, by NaN, or remove the record",
        ),
        (
            "age,label\n\"0,5\",0\n\"1,250\",1\n",
            "line 2 is \"0,5\", not a number; state `decimal = \",\"` if the comma begins the decimals",
        ),
        (
            "age,label\n1,0\n2,1\n3,0\n<0.5,1\n4,1\n<0.5,0\n",
            "it holds numbers but for \"<0.5\" in 2 rows, first in line 5; replace these",
        ),
        (
            "age,label\n1,0\n2,1\n3,0\n-,1\n<0.5,1\n4,1\n>9,0\n",
            "it holds numbers but for 2 texts in 2 rows, first \"<0.5\" in line 6; replace these",
        ),
        (
            "age,label\n1,0\n-,1\n",
            "the value is missing (\"-\"); fill it in, or remove the record, or write `missing",
        ),
    ] {
        Data::new(&settings, "r.csv", table.as_bytes()).refused(message);
    }
}

/// Of a column of numbers that is listed as one of categories most categories have one record, which may be drawn for the
/// test set. The message names the column, and not its indicators.
#[test]
fn indicators_of_one_column_are_named_once() {
    let text_of = |mark: &str, values: fn(usize) -> String| {
        let mut text = "part,age,label\n".to_owned();
        for i in 0..40 {
            let value = if i == 3 || i == 30 { mark.to_owned() } else { values(i) };
            text += &format!("{value},{},{}\n", i * 7 % 11, i % 2);
        }
        text
    };
    let settings =
        "categorical = [\"part\"], missing = \"drop\", clients = 2, test = 0.5, standardise = true";
    let number: fn(usize) -> String = |i| format!("0.{}", 10 + i);
    let word: fn(usize) -> String = |i| format!("w{i}");
    for (text, message) in [
        (
            text_of("-", number),
            "19 of the 37 indicators of column `part`, which has 38 categories; it holds numbers but for \"-\" in 2 rows, first in line 5: unless they are codes, remove it from `categorical`",
        ),
        (
            text_of("0.99", number),
            "indicators of column `part`, which has 39 categories; it holds numbers: unless they are codes, remove it from `categorical`",
        ),
        (
            text_of("NA", word),
            "indicators of column `part`, which has 38 categories; leave it out, or unite rare categories in the file",
        ),
    ] {
        let data = Data::of_records(settings, "r.csv", text.as_bytes());
        data.refused(message).warns(
            "features that are the same in all records of the clients cannot be standardised: ",
        );
    }
}

#[test]
fn records_that_are_wrong_are_refused() {
    let iid = "features = [\"age\"], clients = 2";
    for (settings, table, message) in [
        (iid, "age,label\n1,0\n2,0\n", "has 1 distinct label (0); two are needed"),
        (iid, "age,label\n1,0\n2,1\n3,2\n", "has 3 distinct labels (0, 1, 2)"),
        (iid, "age,label\n1,0\n,1\n", "line 3, column `age`: the value is missing; fill it in"),
        (iid, "age,label\n1,0\nNaN,1\n", "line 3, column `age`: the value is missing"),
        (iid, "age,label\n1,0\nNA,1\n", "or remove the record, or write `missing = \"mean\"`"),
        (iid, "age,label\n1,0\nx,1\n", "column `age` is not a feature: line 3 is \"x\""),
        (
            "categorical = [\"age\"], clients = 2",
            "age,label\n1,0\n,1\n2,1\n",
            "line 3, column `age`: the value is missing; fill it in",
        ),
        (iid, "age,label\n1,0\n2,\n", "line 3, column `label`: the label is missing; fill it in"),
        (
            "categorical = [\"site\"], clients = 2, features = [\"age\"]",
            TABLE,
            "names `site`, which is no feature",
        ),
        (iid, "age,label\n1,0\n2\n", "line 3: it has 1 value, but there are 2 columns"),
        (iid, "old,label\n1,0\n2,1\n", "there is no column `age` in r.csv, only old, label"),
        ("clients = 2, features = [\"age\"], label = \"y\"", TABLE, "there is no column `y`"),
        ("clients = 9, features = [\"age\"]", TABLE, "client 0 of 9 gets no records of the 6"),
        ("clients = 2, split = { column = \"site\" }", TABLE, "combined with a split by column"),
        ("split = \"iid\"", TABLE, "the number of clients among which"),
        ("clients = 2, split = { dirichlet = 0.0 }", TABLE, "must be a finite number above 0"),
        (
            "clients = 9, features = [\"age\"], split = { dirichlet = 1e-3 }",
            TABLE,
            "gets no records",
        ),
        (
            "clients = 2, features = [\"one\"], standardise = true",
            "one,label\n1,0\n1,1\n",
            "of the clients cannot be standardised; leave them out: `one`",
        ),
        (
            "clients = 9, features = [\"age\"], split = { quantity = 1 }",
            TABLE,
            "client 0 of 9 gets",
        ),
        ("clients = 2, split = { quantity = -1 }", TABLE, "must be a finite number above 0"),
        ("clients = 2, features = [\"age\"], test = 1.5", TABLE, "above 0 and below 1, not 1.5"),
        ("clients = 2, features = [\"age\"], test = 0.01", "age,label\n1,0\n", "0 of 1 records to"),
        ("clients = 2, test = { column = \"t\" }", TABLE, "there is no column `t`"),
        (
            "clients = 2, test = { column = \"site\" }",
            TABLE,
            "line 2 of the column of the test set",
        ),
        ("clients = 2, test = \"most\"", TABLE, "unknown name `most`"),
        ("clients = 2, test = true", TABLE, "expected a number or one of fraction, column"),
        ("clients = 2, weights = \"size\"", TABLE, "unknown name `size`"),
    ] {
        let data = Data::new(&records(settings), "r.csv", table.as_bytes());
        data.refused(message).warns("mine.toml:7");
    }
}

//! The list of the kinds of claims, and that of the kinds of figures.

/// Makes `KINDS`, as manifests have them, and the function that makes a value of each table, from a
/// row for each kind: its name in manifests, what its tables are, its keys and what makes the value. A row
/// after `#[cfg(test)]` is read by the tests of this crate alone.
macro_rules! kinds {
    (
        $sort:ident of $common:ty, each by $make:ident as $object:ty;
        $($(#[cfg($only:ident)])? $name:literal, $description:literal, $keys:ty, $value:expr;)*
    ) => {
        #[doc = concat!("The kinds of ", stringify!($sort), ", as manifests have them.")]
        pub static KINDS: &[TableKind<$common>] = &[$($(#[cfg($only)])? TableKind::of::<$keys>($name, $description)),*];

        fn $make(table: &KindTable<$common>) -> Box<$object> {
            match table.kind {
                $($(#[cfg($only)])? $name => Box::new($value(table.keys::<$keys>())),)*
                kind => unreachable!("{} have no kind {kind}", stringify!($sort)),
            }
        }
    };
}
pub(crate) use kinds;

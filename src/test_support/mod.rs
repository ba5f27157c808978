//! What unit tests share with the tests in `tests/`. It is here, since the published archive of this crate
//! has its unit tests, and not the suite, which needs the whole repository.

#[allow(dead_code)] // what only the tests in `tests/` use
pub mod npz;
pub mod process;

//! Data files: found in memory or relative to the manifest, identified by the hash of their
//! bytes, read into plain values. One source file per format.
//!
//! *Invariant*: no value is repaired. A file that cannot be read as it is is refused with the
//! position of the mistake. Memory is allocated for the contents of a file, never for the sizes
//! that it announces.

mod csv;
pub mod describe;
mod error;
mod libsvm;
mod npz;

use crate::files::{self, sha256};
use crate::panics::lock;
pub use error::{ContentError, DataError};
use exactfed_core::problem::arrays::{
    Contents, CsvDialect, DataFile, FileFormat, FileSize, Files, FilesError, is_compressed,
    usual_separator,
};
use exactfed_core::words::enumerated;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The most bytes that a data file may have, and that its arrays may take.
pub const MOST_BYTES: u64 = 8 << 30;
/// The most bytes of a line of text.
const MOST_LINE: usize = 4 << 20;

/// The first bytes of a zip archive, as `.npz` files are.
const ZIP_BEGINNING: &[u8] = b"PK\x03\x04";

/// The most bytes of a file on the disk of which results keep a copy.
pub const MOST_KEPT: u64 = 256 << 20;

/// Reads the bytes of a Parquet table. Its caller provides it, so that this crate does
/// not depend on a table library.
///
/// # Errors
/// What is wrong with the bytes.
pub type TableReader = fn(Vec<u8>) -> Result<Contents, ContentError>;

/// The data files that a manifest may name: files in memory, files below its folder, and the copies that results keep
/// of them.
#[derive(Default)]
pub struct DataFolder {
    /// The folder of the manifest, to which paths are relative.
    base: PathBuf,
    /// Files in memory by their paths, which are never looked up on the disk.
    in_memory: BTreeMap<String, Arc<[u8]>>,
    /// The folder of copies, each named by the hash of its bytes, if there is one.
    copies: Option<PathBuf>,
    /// What reads Parquet tables; without it they are refused.
    tables: Option<TableReader>,
    /// The contents of the files that were read.
    opened: Mutex<HashMap<DataFileKey, Arc<Contents>>>,
}

/// A file's path, the hash that it must have, and how it is written.
type DataFileKey = (String, Option<String>, CsvDialect);

impl DataFolder {
    /// The files in memory, by the paths that the manifest names; the copies in a folder, which are preferred where a
    /// file must have a hash; and the files below the folder `base`. `tables` reads Parquet.
    pub fn new(
        base: &Path,
        copies: Option<PathBuf>,
        tables: Option<TableReader>,
        in_memory: BTreeMap<String, Arc<[u8]>>,
    ) -> Self {
        Self { base: base.to_owned(), copies, tables, in_memory, ..Self::default() }
    }

    /// The copies in this folder alone, which are found by their hashes.
    pub fn of_copies(copies: PathBuf) -> Self {
        Self { copies: Some(copies), ..Self::default() }
    }

    /// Whether results keep a copy of the file of this path and hash: it is in memory, and so will
    /// not be there later, or its copy here, or else the file at the path, has at most [`MOST_KEPT`] bytes. False if
    /// there is no such file.
    pub fn is_kept(&self, path: &str, hash: &str) -> bool {
        let copied = self.copy(hash).and_then(file_length);
        let size = copied.or_else(|| file_length(self.base.join(path)));
        self.in_memory.contains_key(path) || size.is_some_and(|size| size <= MOST_KEPT)
    }

    /// The path at which the copy of the file with this hash is, or would be; `None` without a folder of copies.
    fn copy(&self, hash: &str) -> Option<PathBuf> {
        Some(self.copies.as_ref()?.join(hash))
    }

    /// The path of the copy of the file with this hash, if there is one and its bytes have the hash.
    pub fn sound_copy(&self, hash: &str) -> Option<PathBuf> {
        self.copy(hash).filter(|_| self.of_copy(hash).is_some())
    }

    /// The bytes of the copy with this hash, if there is one and its bytes have the hash. Symbolic links are not
    /// followed.
    fn of_copy(&self, wanted: &str) -> Option<Vec<u8>> {
        let bytes = files::read_plain(&self.copy(wanted)?, MOST_BYTES).ok()?;
        (sha256(&bytes) == wanted).then_some(bytes)
    }

    /// The bytes of the file at a path, which must have the hash `wanted`: from its copy if there is a sound one, and
    /// else from the file.
    ///
    /// # Errors
    /// If the file cannot be read, or has another hash.
    pub fn checked(&self, path: &str, wanted: &str) -> Result<Vec<u8>, DataError> {
        if let Some(bytes) = self.of_copy(wanted) {
            return Ok(bytes);
        }
        let bytes = self.bytes(path).and_then(|bytes| {
            if sha256(&bytes) == wanted {
                Ok(bytes)
            } else {
                Err(DataError::Changed { path: path.to_owned() })
            }
        });
        bytes.map_err(|error| match self.copy(wanted) {
            Some(copy) => DataError::NoSoundCopy { error: Box::new(error), copy },
            None => error,
        })
    }

    /// The bytes of the file at a path, from memory or from the disk. Copies are not looked at: they are found by
    /// hashes.
    ///
    /// # Errors
    /// If it cannot be read. Where there are files in memory, the error names them, since the path may be
    /// one of these with a mistake.
    fn bytes(&self, path: &str) -> Result<Vec<u8>, DataError> {
        match self.in_memory.get(path) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => bytes_of(&self.base.join(path)).map_err(|error| {
                if self.in_memory.is_empty() {
                    return error;
                }
                let names = self.in_memory.keys().cloned().collect();
                DataError::NotInMemory { error: Box::new(error), names }
            }),
        }
    }

    /// The SHA-256 of the bytes of the file at a path, 64 hexadecimal digits, and how many lines and numbers it has,
    /// about.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn hash(&self, path: &str) -> Result<(String, FileSize), DataError> {
        let bytes = self.bytes(path)?;
        Ok((sha256(&bytes), size(path, &bytes)))
    }

    /// How many lines and numbers the file at a path with this hash has, about; `None` if neither the file nor its
    /// copy can be read. The hash is not checked: runs do that when they read the numbers.
    pub fn size(&self, path: &str, hash: &str) -> Option<FileSize> {
        let copy = self.copy(hash).and_then(|copy| files::read_plain(&copy, MOST_BYTES).ok());
        let bytes = copy.or_else(|| self.bytes(path).ok())?;
        Some(size(path, &bytes))
    }
}

/// How many lines and numbers a file of this name has, about, without reading it as what it is: costs and memory are
/// estimated from that.
fn size(path: &str, bytes: &[u8]) -> FileSize {
    // What cannot be unpacked is reported when the file is read.
    let text = text_of(path, bytes).unwrap_or(Cow::Borrowed(bytes));
    size_of_text(path, &text)
}

/// The bytes of a file of this name, unpacked if the name says that they are compressed.
fn text_of<'b>(path: &str, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, ContentError> {
    if is_compressed(path) { unpacked(bytes).map(Cow::Owned) } else { Ok(Cow::Borrowed(bytes)) }
}

/// [`size`] of a file that is not compressed. A text whose name does not say whether it is a table or LIBSVM is counted
/// as the latter if it has colons.
fn size_of_text(path: &str, bytes: &[u8]) -> FileSize {
    let format = DataFile::at(path).format();
    let is_binary = match format {
        Some(FileFormat::Npz | FileFormat::Parquet) => true,
        Some(FileFormat::Csv | FileFormat::Libsvm) => false,
        None => packed_by(bytes).is_some(),
    };
    if is_binary {
        // Each number takes 8 bytes, as numpy writes it; a compressed file has more numbers.
        return FileSize { lines: 0, ends_last_line: false, numbers: bytes.len() as u64 / 8 };
    }
    let ends_last_line = bytes.ends_with(b"\n");
    let lines = count_byte(bytes, b'\n');
    let pairs = count_byte(bytes, b':');
    if pairs > 0 && format != Some(FileFormat::Csv) {
        return FileSize { lines, ends_last_line, numbers: pairs };
    }
    let separators = [b',', b';', b'\t', b'|'].map(|separator| count_byte(bytes, separator));
    let most = separators.into_iter().max().unwrap_or(0);
    FileSize { lines, ends_last_line, numbers: lines + most }
}

/// The program that packed these bytes, if they begin as a packed file that is not unpacked here, or the name of the
/// format. An archive of NumPy is a zip file too.
fn packed_by(bytes: &[u8]) -> Option<&'static str> {
    let beginnings: [(&[u8], &str); 4] = [
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (ZIP_BEGINNING, "zip"),
    ];
    beginnings.into_iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, program)| program)
}

/// The bytes of a text that was compressed with gzip, at most [`MOST_BYTES`].
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, ContentError> {
    let mut text = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut text);
    match read {
        Err(error) => Err(ContentError::Invalid(format!("it is not a gzip file: {error}"))),
        Ok(size) if size as u64 > MOST_BYTES => {
            Err(ContentError::Invalid(format!("it unpacks to more than {MOST_BYTES} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

/// Keys with their values, for a message: "`separator = \";\"` and `decimal = \",\"`".
fn stated(keys: &[(&'static str, String)]) -> String {
    let all: Vec<String> = keys.iter().map(|(key, value)| format!("`{key} = {value}`")).collect();
    enumerated(&all)
}

fn count_byte(bytes: &[u8], wanted: u8) -> u64 {
    bytes.iter().filter(|byte| **byte == wanted).count() as u64
}

fn file_length(path: PathBuf) -> Option<u64> {
    std::fs::metadata(path).ok().map(|about| about.len())
}

/// The bytes of the data file at a path of the disk.
fn bytes_of(whole: &Path) -> Result<Vec<u8>, DataError> {
    files::read_named(whole, MOST_BYTES)
        .map_err(|error| DataError::Unread { path: whole.to_owned(), error })
}

impl Files for DataFolder {
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        self.contents(file).map_err(|error| FilesError::Unread(Box::new(error)))
    }
}

impl DataFolder {
    /// The contents of a file, which must have its hash if one is given. They are read once and kept: other threads
    /// that ask for a file wait meanwhile.
    fn contents(&self, file: &DataFile) -> Result<Arc<Contents>, DataError> {
        let key = (file.path.clone(), file.sha256.clone(), file.dialect);
        let mut opened = lock(&self.opened);
        if let Some(contents) = opened.get(&key) {
            return Ok(contents.clone());
        }
        let bytes = match &file.sha256 {
            Some(wanted) => self.checked(&file.path, wanted)?,
            None => self.bytes(&file.path)?,
        };
        let contents = Arc::new(
            read(file, bytes, self.tables)
                .map_err(|error| DataError::Content { path: file.path.clone(), error })?,
        );
        opened.insert(key, contents.clone());
        Ok(contents)
    }
}

/// The contents of a file with these bytes, in the format that the ending of its name says; `tables` reads Parquet.
/// Bytes that begin as a zip archive are read as `.npz` whatever the name, but for the other endings.
///
/// # Errors
/// What is wrong with them, and where.
pub fn read(
    file: &DataFile,
    bytes: Vec<u8>,
    tables: Option<TableReader>,
) -> Result<Contents, ContentError> {
    let path = &file.path;
    match file.format() {
        Some(FileFormat::Csv | FileFormat::Libsvm) => read_text(file, &text_of(path, &bytes)?),
        Some(FileFormat::Npz | FileFormat::Parquet) if is_compressed(path) => {
            Err(ContentError::UnknownExtension)
        }
        Some(FileFormat::Npz | FileFormat::Parquet) if bytes.is_empty() => Err(ContentError::Empty),
        Some(FileFormat::Npz) => npz::read(bytes),
        Some(FileFormat::Parquet) => tables.ok_or(ContentError::NoParquet)?(bytes),
        // Arrays in memory, and copies of them, need no extension.
        None if bytes.starts_with(ZIP_BEGINNING) && !path.ends_with(".zip") => npz::read(bytes),
        None => read_unnamed(file, &bytes),
    }
}

/// The contents of a file whose name does not say what it holds: LIBSVM files usually have no extension.
///
/// # Errors
/// What to do with any other file, as far as its bytes show it.
fn read_unnamed(file: &DataFile, bytes: &[u8]) -> Result<Contents, ContentError> {
    if let Some(program) = packed_by(bytes) {
        return Err(ContentError::Packed { program });
    }
    match text_of(&file.path, bytes) {
        Ok(text) if !text.is_empty() && std::str::from_utf8(&text).is_ok() => {
            read_text(file, &text)
        }
        _ => Err(ContentError::UnknownExtension),
    }
}

/// The contents of a CSV or LIBSVM file with these bytes, which are not compressed.
fn read_text(file: &DataFile, bytes: &[u8]) -> Result<Contents, ContentError> {
    check_lines(bytes)?;
    if bytes.trim_ascii().is_empty() {
        return Err(ContentError::Empty);
    }
    if file.format() == Some(FileFormat::Csv) {
        return csv::read(bytes, with_default_separator(file));
    }
    let read = libsvm::read(bytes);
    let is_meant = !path_may_be_table(&file.path) || libsvm::begins_as_libsvm(bytes);
    if read.is_ok() || is_meant {
        return read;
    }
    let keys = detected_dialect(&file.path, bytes, file.dialect).keys();
    Err(if keys.is_empty() { ContentError::NoTable } else { ContentError::OtherDialect { keys } })
}

/// How a CSV file is written, with its separator.
fn with_default_separator(file: &DataFile) -> CsvDialect {
    let separator = file.dialect.separator.unwrap_or_else(|| usual_separator(&file.path));
    CsvDialect { separator: Some(separator), ..file.dialect }
}

/// How a file of this name with these bytes, unpacked, seems to be written, apart from what `stated` says; what is
/// usual is left out. The separator of a file is always there whose name does not say that it is a table. The default for a
/// file that is none.
fn detected_dialect(path: &str, text: &[u8], stated: CsvDialect) -> CsvDialect {
    let may_be_libsvm = path_may_be_table(path) && libsvm::begins_as_libsvm(text);
    match DataFile::at(path).format() {
        Some(FileFormat::Csv) => {
            let usual = usual_separator(path);
            let found =
                csv::dialect::detected(text, CsvDialect { separator: Some(usual), ..stated });
            CsvDialect {
                separator: found.separator.filter(|separator| *separator != usual),
                ..found
            }
        }
        _ if path_may_be_table(path) && !may_be_libsvm => {
            let found = csv::dialect::detected(text, stated);
            if found.separator.is_some() { found } else { CsvDialect::default() }
        }
        _ => CsvDialect::default(),
    }
}

/// Whether a file of this name is a table if its separator is stated, and only then.
fn path_may_be_table(path: &str) -> bool {
    let with_separator = CsvDialect { separator: Some(','), ..CsvDialect::default() };
    let stated = DataFile { dialect: with_separator, ..DataFile::at(path) };
    DataFile::at(path).format() != Some(FileFormat::Csv) && stated.format() == Some(FileFormat::Csv)
}

/// An error if a line of a text is longer than the lines of any sensible table, before a reader sees it.
fn check_lines(bytes: &[u8]) -> Result<(), ContentError> {
    let mut all = bytes.split(|b| *b == b'\n').enumerate();
    match all.find(|(_, line)| line.len() > MOST_LINE) {
        None => Ok(()),
        Some((i, line)) => Err(ContentError::LongLine { line: i + 1, bytes: line.len() }),
    }
}

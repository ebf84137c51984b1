//! A server's sysfs, procfs and devtmpfs with one drive, in a folder of the test's own.

use std::fs;
use std::os::unix::fs::{symlink, FileExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::node::Roots;

/// The serial of its drive.
pub const SERIAL: &str = "RL000001";
/// The WWN of its drive.
pub const WWN: &str = "5000c500a0000001";
/// The size of its drive.
pub const BYTES: u64 = 1 << 20;

static TREES: AtomicU32 = AtomicU32::new(0);

/// The folder, removed when this is dropped. Its methods panic where the folder cannot be changed.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// `sda`, unused; a regular file stands for its node.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let number = TREES.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("hold-{}-{number}", std::process::id()));
        let tree = Self { root };
        tree.file("dev/sda", "");
        fs::OpenOptions::new()
            .write(true)
            .open(tree.root.join("dev/sda"))
            .and_then(|node| node.set_len(BYTES))
            .unwrap();
        tree.link(&format!("dev/disk/by-id/wwn-0x{WWN}"), "../../sda");
        tree.file("proc/self/mountinfo", "");
        tree.file("sys/devices/sda/dev", "8:0");
        tree.file("sys/devices/sda/size", &(BYTES / 512).to_string());
        tree.file(
            "sys/devices/sda/device/vpd_pg80",
            &format!("\0\u{80}\0\u{8}{SERIAL}"),
        );
        tree.file("sys/devices/sda/device/wwid", &format!("naa.{WWN}"));
        tree.link("sys/class/block/sda", "../../devices/sda");
        tree.link("sys/dev/block/8:0", "../../devices/sda");
        tree
    }

    /// Its mount points.
    #[must_use]
    pub fn roots(&self) -> Roots {
        Roots {
            sys: self.root.join("sys"),
            proc: self.root.join("proc"),
            dev: self.root.join("dev"),
            run: self.root.join("run"),
        }
    }

    /// The path of a node, as its users give it.
    #[must_use]
    pub fn node(&self, name: &str) -> String {
        format!("/dev/{name}")
    }

    /// Every character of `content` is one byte.
    pub fn file(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = content.chars().map(|letter| letter as u8).collect();
        fs::write(path, bytes).unwrap();
    }

    /// Make a symbolic link.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// Remove a file.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.root.join(path)).unwrap();
    }

    /// Remove a folder.
    pub fn remove_all(&self, path: &str) {
        fs::remove_dir_all(self.root.join(path)).unwrap();
    }

    /// Have the second label of a ZFS pool on the drive.
    pub fn zfs_label(&self) {
        let node = fs::OpenOptions::new()
            .write(true)
            .open(self.root.join("dev/sda"))
            .unwrap();
        let magic = 0x00ba_b10c_u64.to_le_bytes();
        node.write_all_at(&magic, (256 << 10) + (128 << 10) + 1024)
            .unwrap();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A test that fails leaves it, which harms nothing.
        let _ = fs::remove_dir_all(&self.root);
    }
}

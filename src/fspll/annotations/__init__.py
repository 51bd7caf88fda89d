"""What people and annotation tools write down: samples with candidate labels, from many formats."""
